import { ChurnMap } from '../../collections/churn-map.js';
import type { Granted, LockStore } from '../../store/lock-store.js';
import { usesLocalQueue, type LockRequest } from '../request/lock-request.js';
import type { LocalQueue } from './local-queue.js';
import type { WaitingCall } from './waiting-call.js';
import { PendingAcquire } from './pending-acquire.js';

/**
 * Keeps the acquires of this process that the store has not finished, by token, so that the messages of the store reach
 * them. A place in the queue of the store belongs to the process: a caller that gives up leaves its place to the next
 * one in the local queue.
 */
export class PendingAcquires {
  readonly #store: LockStore;
  readonly #localQueue: LocalQueue<unknown>;
  readonly #pending = new ChurnMap<string, PendingAcquire>();
  /** Acquires that their callers left to the next in the local queue, by key. */
  readonly #inherited = new ChurnMap<string, PendingAcquire>();

  constructor(store: LockStore, localQueue: LocalQueue<unknown>) {
    this.#store = store;
    this.#localQueue = localQueue;
  }

  /**
   * Registers an acquire before it is sent, because the grant can arrive before the reply. Continues the acquire of the
   * caller before, if that one has left its place to this one: it belongs to whoever has the turn of its key here.
   */
  register(request: LockRequest, token: string, startedAt: number): PendingAcquire {
    const key = request.keys[0]!;
    const left = usesLocalQueue(request) ? this.#inherited.get(key) : undefined;
    const inherited = left && canInherit(request, left) ? left : undefined;
    const pending = inherited ? inherited.repeat() : new PendingAcquire(request, token);
    if (inherited) {
      this.#inherited.delete(key);
      inherited.wasOffered = false;
    } else this.#pending.set(token, pending);
    pending.waitsUntil = startedAt + request.waitMs;
    return pending;
  }

  /** Forgets an acquire that has ended, unless it was left to the next caller. */
  unregister(pending: PendingAcquire): void {
    if (this.#inherited.get(pending.keys[0]!) !== pending) this.#pending.delete(pending.token);
  }

  /**
   * Leaves the queue of the store; or leaves the place there to the next in the local queue. Otherwise each caller that
   * gives up would send its successor to the back.
   */
  async giveUp(pending: PendingAcquire, request: LockRequest): Promise<void> {
    pending.waitingCall = undefined;
    if (!pending.queue) return;
    const key = pending.keys[0]!;
    const heir = usesLocalQueue(request) && pending.keys.length === 1 ? this.#localQueue.next(key) : undefined;
    if (heir && canInherit(heir, pending)) this.#inherited.set(key, pending);
    else await this.#store.cancel(pending);
  }

  /**
   * Gives the turns of these keys to the next in the local queue; and cancels what was left to a caller that is not the
   * next one.
   */
  leaveLocalQueue(keys: readonly string[]): void {
    for (const key of keys) {
      const inherited = this.#inherited.get(key);
      const next = this.#localQueue.next(key);
      if (inherited && !(next && canInherit(next, inherited))) {
        this.#inherited.delete(key);
        this.#pending.delete(inherited.token);
        void this.#store.cancel(inherited);
      }
      this.#localQueue.leave(key);
    }
  }

  /** Passes on that the store granted the lock to a token. Returns false when the token is not pending. */
  granted(token: string, grant: Granted): boolean {
    const pending = this.#pending.get(token);
    pending?.granted(grant);
    return pending !== undefined;
  }

  /**
   * Passes on that the store offers the lock to a token, which has to ask for it. Returns false when the token is not
   * pending.
   */
  offered(token: string): boolean {
    const pending = this.#pending.get(token);
    pending?.offer();
    return pending !== undefined;
  }

  /** Notes that somebody waits for the lock of a token. */
  markContended(token: string): void {
    const pending = this.#pending.get(token);
    if (pending) pending.contended = true;
  }

  /** Notes that the lock of a token was taken away by force. */
  markForcedAway(token: string): void {
    const pending = this.#pending.get(token);
    if (pending) pending.wasForcedAway = true;
  }

  /** Lists the calls that wait in the store. A call of several keys waits for each of them. */
  *waiting(): Iterable<WaitingCall> {
    for (const { keys, waitingCall } of this.#pending.values())
      if (waitingCall) for (const key of keys) yield { key, ...waitingCall };
  }

  /** Wakes all that wait, to ask the store again. */
  wakeAll(): void {
    for (const pending of this.#pending.values()) pending.wake();
  }

  /** Ends all waiting with an error. */
  failAll(error: unknown): void {
    for (const pending of this.#pending.values()) pending.fail(error);
  }
}

/** Whether a place in the queue serves the caller as well as a new one would. */
function canInherit({ keys, leaseMs }: LockRequest, pending: PendingAcquire): boolean {
  return keys.length === 1 && pending.keys.length === 1 && leaseMs === pending.leaseMs;
}
