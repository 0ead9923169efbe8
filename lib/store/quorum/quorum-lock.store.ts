import { now } from '../../clock/deadline.js';
import { ChurnMap } from '../../collections/churn-map.js';
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
  type FoundProcesses,
  type Granted,
  type Busy,
  type KeyView,
  type LockDetails,
  type LockStore,
  type OwnedLock,
  type ProcessQuestion,
  type ProcessReply,
  type RenewalOutcome,
  type StoreListener,
} from '../lock-store.js';
import { notOnQuorum, unsupported } from './quorum-limits.js';
import { askProcessOf, processesOf } from '../processes-of.js';
import { untilDecided, type Try } from './collisions.js';
import { QuorumAttempt, yesOrNo } from './quorum-attempt.js';
import { QuorumNodes, type QuorumNode } from './quorum-nodes.js';
import { QuorumRenewal } from './quorum-renewal.js';
import { QuorumTurns } from './quorum-turns.js';
import { likelyView, viewOfMajority } from './quorum-view.js';
import { Sweep } from '../sweep.js';

/**
 * Stores locks on several independent nodes, of which a majority must agree: the Redlock algorithm. A minority of
 * nodes may be dead, hung or slow, and nobody notices. Only exclusive locks, without a common queue: see
 * docs/decisions/0008.
 *
 * @see https://redis.io/docs/latest/develop/clients/patterns/distributed-locks/
 */
export class QuorumLockStore implements LockStore {
  readonly #nodes: QuorumNodes;
  readonly #listeners = new Listeners();
  readonly #turns = new QuorumTurns();
  /**
   * By token: the attempts that are under way, and those that got the locks which are held. They know which nodes
   * granted it. For a token that is not here all nodes are asked.
   */
  readonly #attempts = new ChurnMap<string, QuorumAttempt>();
  /** Forgets locks that were lost and never released. */
  readonly #neverGivenBack = new Sweep(this.#attempts, ({ isOver }) => isOver);
  #attemptCount = 0;
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
        contended: (token) => this.#contended(token),
        forceReleased: (token, forced) => this.#attempts.get(token)?.wasForcedOn(at, forced),
        describe: (token) => listener.describe(token),
        // A quorum has no queue, so it offers nothing.
        offered: () => false,
        answer: (question) => listener.answer(question),
        resync: () => listener.resync(),
      }),
    );
  }

  /**
   * Acquires on a majority. A caller with `queue` joins no queue: the reply says after which time to ask again. For any
   * other, a collision is no answer, because all callers that ask at the same moment might get none.
   */
  acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const { queue } = command;
    const refused = unsupported(command);
    if (refused) return Promise.reject(refused);
    if (!this.#opened) this.open();
    const backMs = queue ? this.#turns.othersTurn(command) : 0;
    if (backMs > 0) return Promise.resolve({ granted: false, holder: '', leaseLeftMs: backMs, ahead: 0, fence: 0 });

    return queue ? this.#try(command).reply : untilDecided(() => this.#try(command), this.#turns, command.leaseMs);
  }

  /** Returns undefined: between two attempts a caller has nothing in the store. */
  firstOf(): undefined {
    return undefined;
  }

  /** Does nothing: between two attempts a caller has nothing in the store. */
  async cancel(_command: Cancellation): Promise<void> {}

  renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    for (const { token, leaseMs } of renewals) this.#attempts.get(token)?.mayLastFor(leaseMs);
    return QuorumRenewal.of(this.#nodes, renewals, (lock, at) => this.#isGrantedOn(lock, at));
  }

  async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    const { majority } = this.#nodes;
    this.#attempts.get(lock.token)?.mayLastFor(lock.leaseMs);
    const grant = await this.#nodes.decide(
      (node, at) => node.reserve(lock).then((reply) => (this.#isGrantedOn(lock, at) ? reply : undefined)),
      (replies) => {
        const grants = replies.filter((reply) => reply !== undefined);
        if (grants.length >= majority)
          return {
            granted: true,
            fence: Math.max(...grants.map(({ fence }) => fence)),
            fenceCount: HAND_OFF_FENCES,
            contended: true,
          } as const;
        return replies.length - grants.length >= majority ? 'gone' : undefined;
      },
    );
    if (grant === 'gone') return undefined;
    this.#raise(grant.fence, grant.fenceCount);
    return grant;
  }

  release(lock: OwnedLock, keepMs = 0): Promise<boolean> {
    const attempt = this.#attempts.get(lock.token);
    this.#attempts.delete(lock.token);
    const give = (node: QuorumNode) => node.release(lock, keepMs);
    const released = attempt ? attempt.release(give) : this.#nodes.decide(give, yesOrNo(this.#nodes));
    // Nobody can tell an unsubscribed process that others wait. If it did not assume so, they would starve.
    this.#turns.leave(lock.keys, attempt?.contended || this.#nodes.isUnsubscribed, released);
    return released;
  }

  async upgrade(): Promise<Granted | undefined> {
    throw notOnQuorum('An upgrade', 'it has no readers');
  }

  async downgrade(): Promise<boolean> {
    throw notOnQuorum('A downgrade', 'it has no readers');
  }

  isLocked(key: string): Promise<boolean> {
    return this.#nodes.look(
      (node) => node.isLocked(key),
      yesOrNo(this.#nodes),
      () => true,
    );
  }

  async inspect(key: string): Promise<KeyView | undefined> {
    const view = await this.#nodes.look((node) => node.inspect(key), viewOfMajority(this.#nodes), likelyView);
    return view === 'free' ? undefined : view;
  }

  /** Asks on all nodes, because the holder's process listens on each of them: the first reply is enough. */
  describe(token: string): Promise<LockDetails | undefined> {
    return new Promise((resolve) => {
      this.#nodes.put({
        isLook: true,
        ask: (node) => node.describe(token),
        replied: (details: LockDetails | undefined) => details && resolve(details),
        decides: ({ pending }) => {
          if (pending === 0) resolve(undefined);
          return pending === 0;
        },
      });
    });
  }

  /** Looks on all nodes: a process whose subscription to one of them is down is found on another. */
  async findProcesses(): Promise<FoundProcesses> {
    const found = await Promise.all(this.#nodes.all.map(processesOf));
    return {
      sources: [...new Set(found.flatMap(({ sources }) => sources))],
      unreached: found.flatMap(({ unreached }) => unreached),
    };
  }

  /** Asks over one node after the other, those that seem to hang last, until one of them passes the question on. */
  async askProcess(source: string, question: ProcessQuestion): Promise<ProcessReply> {
    const order = this.#nodes.all.map((node, at) => ({ node, isSilent: this.#nodes.isSilent(at) }));
    order.sort((one, other) => Number(one.isSilent) - Number(other.isSilent));
    const outcomes: ProcessReply[] = [];
    for (const { node } of order) {
      const reply = await askProcessOf(node, source, question);
      if (reply !== 'gone' && reply !== 'unavailable') return reply;
      outcomes.push(reply);
    }
    return outcomes.includes('unavailable') ? 'unavailable' : 'gone';
  }

  /** Waits for all nodes, so that nothing of the lock is left on a slow one. */
  forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    return this.#nodes.watched(this.#forceRelease(key, options));
  }

  /** Waits first for all calls in flight that change something, also on slow nodes. */
  async close(): Promise<void> {
    await this.#nodes.idle();
    this.#turns.close();
    await Promise.all(this.#nodes.all.map((node) => node.close()));
  }

  #try(command: AcquireCommand): Try {
    const { keys, token, queue, leaseMs, sharing, label } = command;
    // A late message of one attempt must not meet another attempt of the same caller.
    const own = freshToken(token, ++this.#attemptCount);
    const forcedAway = (forced: ForcedUnlock) => this.#listeners.forceReleased(own, forced);
    const attempt = new QuorumAttempt(
      this.#nodes,
      { keys, token: own, leaseMs, sharing, label, queue: false, polls: queue },
      forcedAway,
    );
    this.#neverGivenBack.ifDue();
    this.#attempts.set(own, attempt);
    const reply = this.#outcomeOf(attempt, command, own);
    return { attempt, reply };
  }

  async #outcomeOf(attempt: QuorumAttempt, command: AcquireCommand, token: string): Promise<Granted | Busy> {
    const askedAt = now();
    try {
      const reply = await attempt.start();
      this.#turns.replied(now() - askedAt);
      if (!reply.granted) return { ...reply, leaseLeftMs: this.#turns.delayOf(command) };
      // The next grant may come from nodes whose counters are behind.
      attempt.raise(reply.fence + fenceCountFor(token) - 1);
      return reply;
    } finally {
      if (!attempt.isGranted) this.#attempts.delete(token);
    }
  }

  async #forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    // The next holder must have a larger fence, and this one's process may not have had the time to raise the nodes
    // to its own.
    const view = await this.inspect(key);
    for (const { token } of view?.holders ?? []) {
      const details = await this.describe(token);
      if (details) this.#raise(details.fence, HAND_OFF_FENCES);
    }
    const outcomes = await Promise.allSettled(this.#nodes.all.map((node) => node.forceRelease(key, options)));
    const errors = outcomes.filter((outcome) => outcome.status === 'rejected').map(({ reason }) => reason as Error);
    if (this.#nodes.isOutage(errors)) throw this.#nodes.unavailable(errors);
    return outcomes.some((outcome) => outcome.status === 'fulfilled' && outcome.value);
  }

  /** Makes every later fence of all nodes larger than these. */
  #raise(fence: number, fenceCount: number): void {
    for (const node of this.#nodes.all) node.raise(fence + fenceCount - 1);
  }

  #contended(token: string): void {
    const attempt = this.#attempts.get(token);
    if (!attempt) return;
    attempt.contended = true;
    this.#listeners.contended(token);
  }

  #isGrantedOn({ token }: OwnedLock, at: number): boolean {
    return this.#attempts.get(token)?.isGrantedOn(at) ?? true;
  }
}

/** Makes the token of one attempt. Its source, before the last dot, stays the same, and so does the mark at its end. */
function freshToken(token: string, attempt: number): string {
  const isMarked = hasLocalWaiters(token);
  return `${isMarked ? token.slice(0, -1) : token}-${attempt.toString(36)}${isMarked ? LOCAL_WAITERS_MARK : ''}`;
}
