import { now } from '../../clock/deadline.js';
import type { Granted, Busy, LockStore } from '../../store/lock-store.js';
import { nextCheckAt } from './safety-check.js';
import { PendingAcquire, type Answer } from './pending-acquire.js';
import type { LocalQueue } from './local-queue.js';
import {
  canStartWith,
  changedRequest,
  usesLocalQueue,
  heldBy,
  refusal,
  turnsOf,
  type LockRequest,
  type Refusal,
} from '../request/lock-request.js';
import type { FindDeadlock, DeadlockDetector } from '../nesting/deadlock-detector.js';

interface StoreQueueParts {
  readonly store: LockStore;
  readonly gate: LocalQueue;
  readonly waiting: DeadlockDetector;
}

interface StoreWait {
  readonly request: LockRequest;
  readonly startedAt: number;
  readonly findDeadlock: FindDeadlock;
}

type Waited = Answer<Granted> | Refusal | undefined;

/** The callers of this process that ask the store for a lock. The one loop that waits is here. */
export class PendingAcquires {
  readonly waiting: DeadlockDetector;
  readonly #store: LockStore;
  readonly #gate: LocalQueue;
  readonly #claims = new Map<string, PendingAcquire>();
  /** Claims that their callers left to the next in the gate, by key. */
  readonly #left = new Map<string, PendingAcquire>();

  constructor({ store, gate, waiting }: StoreQueueParts) {
    this.#store = store;
    this.#gate = gate;
    this.waiting = waiting;
  }

  /**
   * Registers a claim before the store is asked: the lock may be given to it before the answer is here. It is the one of the
   * caller before, if that has left his to us.
   */
  register(request: LockRequest, token: string, startedAt: number): PendingAcquire {
    const key = request.keys[0]!;
    const left = usesLocalQueue(request) ? this.#left.get(key) : undefined;
    const claim = left ? askedAgain(left) : new PendingAcquire(request, token);
    if (left) {
      this.#left.delete(key);
      left.wasOffered = false;
    } else this.#claims.set(token, claim);
    claim.waitsUntil = startedAt + request.waitMs;
    return claim;
  }

  /** Asks the store. One of the app's own may throw where it should reject. */
  ask(claim: PendingAcquire): Promise<Granted | Busy> {
    try {
      return this.#store.acquire(claim);
    } catch (error) {
      return Promise.reject(error);
    }
  }

  unregister(claim: PendingAcquire): void {
    if (this.#left.get(claim.keys[0]!) !== claim) this.#claims.delete(claim.token);
  }

  /** Lets the next in the gate through; and gives up what was left to another than that. */
  leaveLocalQueue(keys: readonly string[]): void {
    for (const key of keys) {
      const left = this.#left.get(key);
      const next = this.#gate.next(key);
      if (left && !(next && canTakeOver(left, next))) {
        this.#left.delete(key);
        this.#claims.delete(left.token);
        void this.#store.cancel(left);
      }
      this.#gate.leave(key);
    }
  }

  /** The store gave the lock to a token. Answers false when nobody asks with it. */
  granted(token: string, grant: Granted): boolean {
    const claim = this.#claims.get(token);
    claim?.granted(grant);
    return claim !== undefined;
  }

  /** The store gave the lock to a token, which is to ask for it. Answers false when nobody asks with it. */
  offered(token: string): boolean {
    const claim = this.#claims.get(token);
    claim?.offer();
    return claim !== undefined;
  }

  /** Somebody waits for the lock of a token. */
  markContended(token: string): void {
    const claim = this.#claims.get(token);
    if (claim) claim.contended = true;
  }

  /** The lock of a token was taken away by force. */
  lost(token: string): void {
    const claim = this.#claims.get(token);
    if (claim) claim.lost = true;
  }

  /** Lets everybody ask again. */
  wakeAll(): void {
    for (const claim of this.#claims.values()) claim.wake();
  }

  /** Ends all waiting. */
  failAll(error: unknown): void {
    for (const claim of this.#claims.values()) claim.fail(error);
  }

  /**
   * A caller of several keys is to wait in the store. Whatever it does not have there is for others of this process as for anybody else: they may use it
   * meanwhile, and whom it waits for may need it. So it keeps its turn only for the key that the store takes first, which it has there or
   * waits for. It does not ask for the others again: the store queues it, whoever is through for them here. Where the store does not, its turns
   * are what gets it in, so it keeps them.
   */
  stepAside(request: LockRequest): LockRequest {
    const { keys, waitMs } = request;
    if (keys.length === 1 || waitMs === 0 || !usesLocalQueue(request) || request.keptTurns) return request;
    const first = this.#store.firstOf ? this.#store.firstOf(keys) : keys[0]!;
    if (first === undefined) return request;
    this.leaveLocalQueue(keys.filter((key) => key !== first));
    return changedRequest(request, { keptTurns: [first] });
  }

  /**
   * Waits until the store gives the lock to a claim that it refused at first. Leaves nothing behind when it gives up. Answers
   * undefined when the caller has to ask with a fresh token.
   *
   * @throws LockUnavailableError, the reason of a signal that aborts, or what all are failed with
   */
  async wait(claim: PendingAcquire, refused: Answer<Busy>, request: LockRequest, startedAt: number): Promise<Waited> {
    const key = request.keys[0]!;
    // Who comes through the gate has been counted there.
    const waiters = usesLocalQueue(request) ? 0 : this.#gate.waiterCount(key);
    if (request.waitMs > 0 && waiters >= request.maxWaiters) {
      if (claim.queue) await this.#store.cancel(claim);
      return refusal('too-many-waiters', request, startedAt, heldBy(refused.reply));
    }
    const waiting = this.waiting.during(request, (findDeadlock) => {
      return this.#standInLine(claim, refused, { request, startedAt, findDeadlock });
    });
    if (!usesLocalQueue(request)) return this.#gate.countWaiting(key, waiting);
    for (const key of turnsOf(request)) this.#gate.setFront(key, 'waiting');
    return waiting;
  }

  /** Asks again now and then: messages get lost, and a holder that crashed releases nothing. */
  async #standInLine(claim: PendingAcquire, refused: Answer<Busy>, wait: StoreWait): Promise<Waited> {
    const { request, startedAt, findDeadlock } = wait;
    const until = startedAt + request.waitMs;
    const signals = request.waitSignals();
    if (claim.queue) request.onWait?.();
    let { reply, sentAt } = refused;
    while (claim.queue && now() < until) {
      if (reply.spent) return undefined;
      claim.refused(reply);
      for (const key of turnsOf(request).slice(0, 1)) this.#gate.setEnd(key, { endsAt: sentAt + reply.leaseLeftMs });
      const checkAt = nextCheckAt(reply, claim);
      const granted = await this.#wakeUp(claim, request, Math.min(checkAt, until), signals);
      if (granted && isFresh(granted, request, sentAt)) return { reply: granted, sentAt };
      // A timer may fire a little early; to ask once more for the rest of a ms would be in vain. But what was to be asked in time is asked, however late.
      if (!granted && checkAt >= until - 1 && now() >= until - 1) break;
      askedAgain(claim);
      sentAt = now();
      const answer = await this.#store.acquire(claim);
      if (answer.granted) return { reply: answer, sentAt, again: true };
      reply = answer;
    }
    const deadlock = findDeadlock();
    await this.#giveUp(claim, request);
    return refusal('held', request, startedAt, { ...heldBy(reply), deadlock });
  }

  async #wakeUp(
    claim: PendingAcquire,
    request: LockRequest,
    untilMs: number,
    signals: readonly AbortSignal[],
  ): Promise<Granted | undefined> {
    try {
      return await claim.wait(untilMs, signals);
    } catch (error) {
      await this.#giveUp(claim, request);
      throw error;
    }
  }

  /**
   * Leaves the queue of the store; or leaves the place there to the next in the gate. It belongs to the process: else, where
   * many give up, each would send the next one to the end.
   */
  async #giveUp(claim: PendingAcquire, request: LockRequest): Promise<void> {
    if (!claim.queue) return;
    const key = claim.keys[0]!;
    const heir = usesLocalQueue(request) && claim.keys.length === 1 ? this.#gate.next(key) : undefined;
    if (heir && canTakeOver(claim, heir)) this.#left.set(key, claim);
    else await this.#store.cancel(claim);
  }
}

/** What was heard of before is older than the answer to come. */
function askedAgain(claim: PendingAcquire): PendingAcquire {
  claim.isQueued = true;
  claim.lost = false;
  return claim;
}

/** Whether the place of a claim is as good as one of the caller's own. */
function canTakeOver(claim: PendingAcquire, { keys, leaseMs }: LockRequest): boolean {
  return keys.length === 1 && claim.keys.length === 1 && leaseMs === claim.leaseMs;
}

/**
 * Whether a lock that was handed over is good for long enough. All we know is that it was not ours yet when we last asked, so
 * its time counts from there. A caller of several keys was given only one of them.
 */
function isFresh({ leaseMs }: Granted, request: LockRequest, sentAt: number): boolean {
  const lastsMs = leaseMs ?? request.leaseMs;
  return (
    request.keys.length === 1 &&
    canStartWith(lastsMs, request) &&
    now() - sentAt < lastsMs * (request.watchdog ? 2 / 3 : 1 / 10)
  );
}
