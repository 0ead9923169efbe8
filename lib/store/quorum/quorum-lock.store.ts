import { now } from '../../clock/deadline.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { lockNames } from '../../errors/messages.js';
import { Listeners } from '../listeners.js';
import {
  HAND_OFF_FENCES,
  fenceCountFor,
  hasLocalWaiters,
  LOCAL_WAITERS_MARK,
  type AcquireCommand,
  type Cancellation,
  type ForcedUnlock,
  type ForceUnlockOptions,
  type Granted,
  type Busy,
  type KeyView,
  type LockDetails,
  type LockStore,
  type OwnedLock,
  type RenewalOutcome,
  type StoreListener,
} from '../lock-store.js';
import { QuorumAttempt, yesOrNo } from './quorum-attempt.js';
import { QuorumNodes, type QuorumNode } from './quorum-nodes.js';
import { QuorumRenewal } from './quorum-renewal.js';
import { QuorumTurns } from './quorum-turns.js';
import { viewOfMajority } from './quorum-view.js';
import { Sweep } from '../sweep.js';

const NO_READERS = 'it has no readers';

/**
 * Locks that a majority of several independent stores agrees on: the Redlock algorithm. A minority of them may be dead, hung or
 * slow, and nobody notices. Only exclusive locks, without a common queue: see docs/decisions/0008.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class QuorumLockStore implements LockStore {
  readonly #nodes: QuorumNodes;
  readonly #listeners = new Listeners();
  readonly #turns = new QuorumTurns();
  /** By token: who granted the locks that are held. What is not here is asked of all nodes. */
  readonly #held = new Map<string, QuorumAttempt>();
  /** Forgets locks that were lost and never given back. */
  readonly #neverGivenBack = new Sweep(this.#held, (_, token) => !this.#listeners.describe(token));
  #attempts = 0;
  #opened = false;

  /** @throws LockOptionsError for fewer than three nodes, or an even number */
  constructor(nodes: readonly QuorumNode[]) {
    this.#nodes = new QuorumNodes(nodes);
  }

  get nodes(): readonly LockStore[] {
    return this.#nodes.all;
  }

  open(): void {
    this.#opened = true;
    for (const node of this.#nodes.all) node.open?.();
  }

  listen(listener: StoreListener): void {
    this.#listeners.add(listener);
    this.#nodes.all.forEach((node, at) =>
      node.listen({
        source: listener.source,
        granted: () => false,
        contended: (token) => this.#wanted(token),
        lost: (token, forced) => this.#lost(token, at, forced),
        describe: (token) => listener.describe(token),
        // Nobody is told of his turn here.
        offered: () => false,
        resync: () => listener.resync(),
      }),
    );
  }

  /** With `queue` the caller is not put into any queue: it is told after which time to ask again. */
  acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const { keys, token, queue, leaseMs, sharing, label } = command;
    const refused = unsupported(command);
    if (refused) return Promise.reject(refused);
    if (!this.#opened) this.open();
    const backMs = queue ? this.#turns.othersTurn(command) : 0;
    if (backMs > 0) return Promise.resolve({ granted: false, holder: '', leaseLeftMs: backMs, ahead: 0, fence: 0 });

    // A late echo of one attempt must not meet another one of the same caller.
    const own = freshToken(token, ++this.#attempts);
    const attempt = new QuorumAttempt(this.#nodes, {
      keys,
      token: own,
      leaseMs,
      sharing,
      label,
      queue: false,
      polls: queue,
    });
    const askedAt = now();
    return attempt.start().then((answer) => {
      this.#turns.answered(now() - askedAt);
      if (!answer.granted) return { ...answer, leaseLeftMs: this.#turns.delayOf(command) };
      this.#neverGivenBack.ifDue();
      this.#held.set(own, attempt);
      this.#raise(answer.fence, fenceCountFor(own));
      return answer;
    });
  }

  /** Between two attempts a caller has nothing. */
  firstOf(): undefined {
    return undefined;
  }

  /** There is nothing to leave: between two attempts a caller has nothing. */
  async cancel(_command: Cancellation): Promise<void> {}

  renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    return QuorumRenewal.of(this.#nodes, renewals);
  }

  async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    const { majority } = this.#nodes;
    const grant = await this.#nodes.decide(
      (node) => node.reserve(lock),
      (answers) => {
        const grants = answers.filter((answer) => answer !== undefined);
        if (grants.length >= majority)
          return {
            granted: true,
            fence: Math.max(...grants.map(({ fence }) => fence)),
            fenceCount: HAND_OFF_FENCES,
            contended: true,
          } as const;
        return answers.length - grants.length >= majority ? 'gone' : undefined;
      },
    );
    if (grant === 'gone') return undefined;
    this.#raise(grant.fence, grant.fenceCount);
    return grant;
  }

  release(lock: OwnedLock, keepMs = 0): Promise<boolean> {
    const attempt = this.#held.get(lock.token);
    this.#held.delete(lock.token);
    const give = (node: QuorumNode) => node.release(lock, keepMs);
    const released = attempt ? attempt.release(give) : this.#nodes.decide(give, yesOrNo(this.#nodes));
    this.#turns.leave(lock.keys, attempt?.wanted ?? false, released);
    return released;
  }

  async upgrade(): Promise<Granted | undefined> {
    throw impossible('An upgrade', NO_READERS);
  }

  async downgrade(): Promise<boolean> {
    throw impossible('A downgrade', NO_READERS);
  }

  isLocked(key: string): Promise<boolean> {
    return this.#nodes.decide((node) => node.isLocked(key), yesOrNo(this.#nodes));
  }

  async inspect(key: string): Promise<KeyView | undefined> {
    const view = await this.#nodes.decide((node) => node.inspect(key), viewOfMajority(this.#nodes));
    return view === 'free' ? undefined : view;
  }

  /** The holder's process listens on all nodes: the first that reaches it will do. */
  describe(token: string): Promise<LockDetails | undefined> {
    return new Promise((resolve) => {
      this.#nodes.put({
        ask: (node) => node.describe(token),
        answered: (details: LockDetails | undefined) => details && resolve(details),
        decides: ({ pending }) => {
          if (pending === 0) resolve(undefined);
          return pending === 0;
        },
      });
    });
  }

  /** Waits for all nodes, so that nothing of it is left on a slow one. */
  async forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    // Who comes next must have a larger fence, and the holder may not have had the time to say how large its own is.
    const view = await this.inspect(key);
    for (const { token } of view?.holders ?? []) {
      const details = await this.describe(token);
      if (details) this.#raise(details.fence, HAND_OFF_FENCES);
    }
    const outcomes = await Promise.allSettled(
      this.#nodes.all.map((node) => this.#nodes.watched(node.forceRelease(key, options))),
    );
    const errors = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason as Error);
    if (this.#nodes.isOutage(errors)) throw this.#nodes.unavailable(errors);
    return outcomes.some((outcome) => outcome.status === 'fulfilled' && outcome.value);
  }

  /** Waits for what is under way on slow nodes first. */
  async close(): Promise<void> {
    await this.#nodes.idle();
    this.#turns.close();
    await Promise.all(this.#nodes.all.map((node) => node.close()));
  }

  /** The next grant may come from nodes that counted less far: no fence of theirs may be as small as one of this grant. */
  #raise(fence: number, fenceCount: number): void {
    for (const node of this.#nodes.all) node.raise(fence + fenceCount - 1);
  }

  #wanted(token: string): void {
    const attempt = this.#held.get(token);
    if (!attempt) return;
    attempt.wanted = true;
    this.#listeners.wanted(token);
  }

  /** One node alone can't take a lock away. */
  #lost(token: string, at: number, forced: ForcedUnlock): void {
    const attempt = this.#held.get(token);
    if (attempt?.lostOn.add(at).size === this.#nodes.majority) this.#listeners.lost(token, forced);
  }
}

/** Marks the token of one attempt: what stands before its last dot stays what it was, and so does its end. */
function freshToken(token: string, attempt: number): string {
  const isMarked = hasLocalWaiters(token);
  return `${isMarked ? token.slice(0, -1) : token}-${attempt.toString(36)}${isMarked ? LOCAL_WAITERS_MARK : ''}`;
}

function unsupported({ keys, sharing, fair }: AcquireCommand): LockOptionsError | undefined {
  if (sharing === 'read')
    return impossible(
      `"mode" 'read'`,
      'independent nodes have no common queue, so readers who come and go could keep writers out for ever',
      keys,
    );
  if (sharing !== 'exclusive') {
    return impossible(
      '"permits"',
      'each node counts for itself, so more holders than there are permits could each have a majority (of 3 permits on 5 nodes, 5 holders)',
      keys,
    );
  }
  return fair
    ? impossible('"fair"', 'independent nodes have no common queue, so there is no order to keep', keys)
    : undefined;
}

function impossible(what: string, why: string, keys: readonly string[] = []): LockOptionsError {
  const text = (of: string): string => `${what}${of} is not possible on a quorum: ${why}. Use one Redis for it.`;
  return new LockOptionsError(text(''), keys.length > 0 ? text(` of ${lockNames(keys)}`) : undefined);
}
