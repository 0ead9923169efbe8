import { now } from '../../clock/deadline.js';
import { waitFor } from '../../clock/wait-for.js';
import type { LockRequest } from '../request/lock-request.js';
import type { Lock } from '../lock/lock.js';
import { LinkedQueue, type QueueNode } from './linked-queue.js';

/** What a caller gets from the gate: its turn, or the lock itself from the one before. */
export type Entry = Lock | 'turn';

interface Waiter {
  readonly request: LockRequest;
  readonly pass: (passage: Entry) => void;
  readonly fail: (error: unknown) => void;
}

/**
 * What the one who is through does: asks the store for the first time, waits for it (and counts as a waiter then), or has
 * the lock; or it only waited for its turn, and is about to leave.
 */
type Front = 'asking' | 'waiting' | 'inside' | 'passing';

/** A lease, as far as it is known. */
interface End {
  /** When it ends if nobody renews it, by the monotonic clock. */
  readonly endsAt: number;
}

/** A key that somebody of this process is through for. */
interface Turn {
  front: Front;
  /** The lease of who has the lock: the front, or who is in its way. */
  end: End | undefined;
  /** Those who wait behind, by arrival. */
  queue: LinkedQueue<Waiter> | undefined;
  /** Those who only want to know what the front's first answer is. */
  probes: LinkedQueue<Probe> | undefined;
}

interface Probe {
  readonly request: LockRequest;
  readonly tell: () => void;
  readonly fail: (error: unknown) => void;
}

/**
 * Lets the callers of one process through one at a time for each key, first come, first served.
 * So a process sends the store one caller for a key, however many wait.
 */
export class LocalQueue {
  readonly #turns = new Map<string, Turn>();
  /** How many wait in the store on their own, not in the queue here. */
  readonly #waitingInStore = new Map<string, number>();
  /** Why nobody waits here any more. */
  #closed: { readonly error: unknown } | undefined;

  /** Whether nobody of this process is through. */
  isFree(key: string): boolean {
    return !this.#turns.has(key);
  }

  /** Goes in if nobody of this process is through. */
  tryEnter(key: string): boolean {
    if (this.#turns.has(key)) return false;
    this.#turns.set(key, { front: 'asking', end: undefined, queue: undefined, probes: undefined });
    return true;
  }

  /**
   * Queues for a busy key. Answers with `late()` when `untilMs` came first.
   *
   * @throws the reason of a signal that aborts, or the error the front failed with
   */
  enter<Late>(
    key: string,
    untilMs: number,
    signals: readonly AbortSignal[],
    request: LockRequest,
    late: () => Late,
  ): Promise<Entry | Late> {
    const turn = this.#turns.get(key);
    if (!turn) {
      this.tryEnter(key);
      return Promise.resolve('turn');
    }
    if (this.#closed) return Promise.reject(this.#closed.error);
    const queue = (turn.queue ??= new LinkedQueue());
    let place: QueueNode<Waiter>;
    return waitFor<Entry, Late>(
      untilMs,
      signals,
      (pass, fail) => (place = queue.join({ request, pass, fail })),
      () => queue.leave(place),
      late,
    );
  }

  /** Waits until the front has its first answer from the store. Throws what it failed with, or the reason of a signal. */
  async answered(key: string, signals: readonly AbortSignal[], request: LockRequest): Promise<void> {
    const turn = this.#turns.get(key);
    if (turn?.front !== 'asking') return;
    const line = (turn.probes ??= new LinkedQueue());
    let place: QueueNode<Probe>;
    await waitFor<void>(
      Infinity,
      signals,
      (tell, fail) => (place = line.join({ request, tell, fail })),
      () => line.leave(place),
    );
  }

  /** What the first in the queue asks for. */
  next(key: string): LockRequest | undefined {
    return this.#turns.get(key)?.queue?.first?.request;
  }

  /** Gives the first in the queue the lock of the one who is through. */
  handOff(key: string, lock: Lock): void {
    this.#turns.get(key)?.queue?.first?.pass(lock);
  }

  /** Gives the turn to the next in the queue, or closes it. */
  leave(key: string): void {
    const turn = this.#turns.get(key);
    if (!turn) return;
    tell(turn.probes);
    const next = turn.queue?.first;
    if (!next) {
      this.#turns.delete(key);
      return;
    }
    turn.front = next.request.isPassing ? 'passing' : 'asking';
    turn.end = undefined;
    next.pass('turn');
  }

  /**
   * The store did not answer the front: those behind would meet the same, one time-out after the other. But for those who don't want all
   * that the front wanted: what went wrong may be about another key.
   */
  fail(key: string, error: unknown, wanted: readonly string[] = []): void {
    const turn = this.#turns.get(key);
    for (const { request, fail } of [...(turn?.probes?.all() ?? []), ...(turn?.queue?.all() ?? [])]) {
      if (wanted.every((one) => request.keys.includes(one))) fail(error);
    }
  }

  /** Ends all waiting, for good. */
  failAll(error: unknown): void {
    this.#closed = { error };
    for (const key of this.#turns.keys()) this.fail(key, error);
  }

  /** Lets everybody through, because there is nothing left to guard. */
  open(): void {
    const turns = [...this.#turns.values()];
    this.#turns.clear();
    for (const { queue, probes: curious } of turns) {
      tell(curious);
      for (const waiter of queue?.all() ?? []) waiter.pass('turn');
    }
  }

  setFront(key: string, front: Front): void {
    const turn = this.#turns.get(key);
    if (!turn) return;
    turn.front = front;
    if (front !== 'asking') tell(turn.probes);
  }

  /** Notes the lease of who has the lock. */
  setEnd(key: string, end: End): void {
    const turn = this.#turns.get(key);
    if (turn) turn.end = end;
  }

  /** How long the lease of who has the lock lasts if nobody renews it, in ms. Undefined when it is not known. */
  leaseLeftMs(key: string): number | undefined {
    const end = this.#turns.get(key)?.end;
    return end && Math.max(0, end.endsAt - now());
  }

  /** Counts a caller that waits in the store without a turn, as long as `waiting` lasts. */
  async countWaiting<T>(key: string, waiting: Promise<T>): Promise<T> {
    this.#waitingInStore.set(key, (this.#waitingInStore.get(key) ?? 0) + 1);
    try {
      return await waiting;
    } finally {
      const left = this.#waitingInStore.get(key)! - 1;
      if (left === 0) this.#waitingInStore.delete(key);
      else this.#waitingInStore.set(key, left);
    }
  }

  /** Whether a caller of this process is through, and does not just pass. */
  isTaken(key: string): boolean {
    const turn = this.#turns.get(key);
    return turn !== undefined && turn.front !== 'passing';
  }

  /** Whether a caller of this process has the lock. */
  isInside(key: string): boolean {
    return this.#turns.get(key)?.front === 'inside';
  }

  /** How many callers of this process wait for the key. */
  waiterCount(key: string): number {
    const turn = this.#turns.get(key);
    return (turn?.queue?.size ?? 0) + (turn?.front === 'waiting' ? 1 : 0) + (this.#waitingInStore.get(key) ?? 0);
  }
}

function tell(line: LinkedQueue<Probe> | undefined): void {
  for (const curious of line?.all() ?? []) curious.tell();
}
