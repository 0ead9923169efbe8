import { now } from '../../clock/deadline.js';
import type { Busy, Granted, LockStore } from '../../store/lock-store.js';
import {
  canStartWith,
  changedRequest,
  describeBusy,
  refusal,
  signalsOf,
  turnsOf,
  usesLocalQueue,
  type LockRequest,
  type Refusal,
} from '../request/lock-request.js';
import type { LocalQueue } from './local-queue.js';
import type { AcquireReply, PendingAcquire } from './pending-acquire.js';
import type { PendingAcquires } from './pending-acquires.js';
import { nextCheckAt } from './safety-check.js';
import type { FindDeadlock, WaitTracker } from './wait-tracker.js';

interface StoreWaitParts {
  readonly store: LockStore;
  readonly localQueue: LocalQueue<unknown>;
  readonly pendingAcquires: PendingAcquires;
  readonly tracker: WaitTracker;
}

interface Wait {
  readonly request: LockRequest;
  readonly startedAt: number;
  readonly findDeadlock: FindDeadlock;
  /** Counts the caller as waiting no more. Undefined for one that the local queue counts. */
  readonly endWaiting: (() => void) | undefined;
}

/** Undefined: the caller has to try again with a fresh token. */
type WaitOutcome = AcquireReply<Granted> | Refusal | undefined;

/** Waits in the queue of the store for a lock that the store refused at first. The one loop that waits is here. */
export class StoreWait {
  readonly #store: LockStore;
  readonly #localQueue: LocalQueue<unknown>;
  readonly #pendingAcquires: PendingAcquires;
  readonly #tracker: WaitTracker;

  constructor({ store, localQueue, pendingAcquires, tracker }: StoreWaitParts) {
    this.#store = store;
    this.#localQueue = localQueue;
    this.#pendingAcquires = pendingAcquires;
    this.#tracker = tracker;
  }

  /**
   * Leaves the local turns that a caller of several keys does not need while it waits in the store. Returns its request
   * with the turns it keeps.
   *
   * Other callers of this process may use the keys that the caller does not have in the store; and the call that it
   * waits for may need them. So it keeps its turn only for the key that the store takes first, which it has there or
   * waits for. It does not take the other turns again, because the store queues it for those keys, whoever has the
   * turns here. In a store without such a first key, only its turns let it in: it keeps all of them.
   */
  keepFirstTurn(request: LockRequest): LockRequest {
    const { keys, waitMs } = request;
    if (keys.length === 1 || waitMs === 0 || !usesLocalQueue(request) || request.keptTurns) return request;
    const first = this.#store.firstOf ? this.#store.firstOf(keys) : keys[0]!;
    if (first === undefined) return request;
    this.#pendingAcquires.leaveLocalQueue(keys.filter((key) => key !== first));
    return changedRequest(request, { keptTurns: [first] });
  }

  /**
   * Waits until the store grants a lock that it refused at first. Leaves nothing behind when it gives up.
   *
   * @throws LockUnavailableError, the reason of a signal that aborts, or what all are failed with
   */
  wait(
    pending: PendingAcquire,
    refused: AcquireReply<Busy>,
    request: LockRequest,
    startedAt: number,
  ): Promise<WaitOutcome> {
    const key = request.keys[0]!;
    const hasTurn = usesLocalQueue(request);
    // A caller that comes through the local queue was counted there.
    const waiters = hasTurn ? 0 : this.#localQueue.waiterCount(key);
    if (request.waitMs > 0 && waiters >= request.maxWaiters) return this.#refuse(pending, refused, request, startedAt);
    const endWaiting = hasTurn ? undefined : this.#localQueue.startWaiting(key);
    const waiting = this.#tracker.during(request, (findDeadlock) => {
      return this.#poll(pending, refused, { request, startedAt, findDeadlock, endWaiting });
    });
    for (const key of turnsOf(request)) this.#localQueue.setStage(key, 'waiting');
    return waiting;
  }

  /** Refuses a caller that finds too many others waiting. */
  async #refuse(
    pending: PendingAcquire,
    { reply }: AcquireReply<Busy>,
    request: LockRequest,
    startedAt: number,
  ): Promise<Refusal> {
    if (pending.queue) await this.#store.cancel(pending);
    return refusal('too-many-waiters', request, startedAt, describeBusy(reply));
  }

  /**
   * Waits for messages of the store, and polls now and then: messages get lost, and a crashed holder releases nothing.
   */
  async #poll(pending: PendingAcquire, refused: AcquireReply<Busy>, wait: Wait): Promise<WaitOutcome> {
    const { request, startedAt, findDeadlock, endWaiting } = wait;
    try {
      const until = startedAt + request.waitMs;
      const signals = signalsOf(request);
      if (pending.queue) {
        request.onWait?.({ ...describeBusy(refused.reply), token: refused.reply.holder });
        pending.waitingCall = { request, startedAt };
      }
      let { reply, sentAt } = refused;
      while (pending.queue && now() < until) {
        if (reply.spent) return undefined;
        pending.refused(reply);
        for (const key of turnsOf(request).slice(0, 1))
          this.#localQueue.setLease(key, { endsAt: sentAt + reply.leaseLeftMs, token: reply.holder });
        const checkAt = nextCheckAt(reply, pending);
        let granted: Granted | undefined;
        try {
          granted = await pending.wait(Math.min(checkAt, until), signals);
        } catch (error) {
          await this.#pendingAcquires.giveUp(pending, request);
          throw error;
        }
        if (granted && isFresh(granted, request, sentAt)) return { reply: granted, sentAt };
        // A timer may fire a little early; one more try for the rest of a ms would be in vain. But a check that was due
        // in time is made, however late.
        if (!granted && checkAt >= until - 1 && now() >= until - 1) break;
        pending.repeat();
        sentAt = now();
        const next = await this.#store.acquire(pending);
        if (next.granted) return { reply: next, sentAt, isRepeated: true };
        reply = next;
      }
      const deadlock = findDeadlock();
      await this.#pendingAcquires.giveUp(pending, request);
      return refusal('held', request, startedAt, { ...describeBusy(reply), deadlock });
    } finally {
      endWaiting?.();
    }
  }
}

/**
 * Whether a lock that was handed over lasts long enough. All that is known is that it was not ours yet when we last
 * asked, so its time counts from there. A caller of several keys was given only one of them.
 */
function isFresh({ leaseMs }: Granted, request: LockRequest, sentAt: number): boolean {
  const lastsMs = leaseMs ?? request.leaseMs;
  return (
    request.keys.length === 1 &&
    canStartWith(lastsMs, request) &&
    now() - sentAt < lastsMs * (request.watchdog ? 2 / 3 : 1 / 10)
  );
}
