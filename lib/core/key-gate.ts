import { waitFor } from '../clock/wait-for.js';

interface Waiter {
  readonly wake: () => void;
  readonly fail: (error: Error) => void;
}

/**
 * What the one who is through does: asks the store for the first time, waits for it (and counts as a waiter then), or has
 * the lock.
 */
type Front = 'asking' | 'waiting' | 'inside';

/** A key that somebody of this process is through for. */
interface Turn {
  front: Front;
  /** Those who wait behind, by arrival. */
  readonly queue: Set<Waiter>;
  /** Those who only want to know what the front's first answer is. */
  readonly curious: Set<Waiter>;
}

/**
 * Lets the callers of one process through one at a time for each key, first come, first served.
 * So a process sends the store one caller for a key, however many wait.
 */
export class KeyGate {
  readonly #turns = new Map<string, Turn>();

  /** Goes in if nobody of this process is through. */
  tryEnter(key: string): boolean {
    if (this.#turns.has(key)) return false;
    this.#turns.set(key, { front: 'asking', queue: new Set(), curious: new Set() });
    return true;
  }

  /**
   * Queues for a busy key. Returns false when `untilMs` came first.
   *
   * @throws the reason of a signal that aborts, or the error the front failed with
   */
  enter(key: string, untilMs: number, signals: readonly AbortSignal[]): Promise<boolean> {
    const turn = this.#turns.get(key);
    return turn ? join(turn.queue, untilMs, signals) : Promise.resolve(this.tryEnter(key));
  }

  /** Waits until the front has its first answer from the store. Throws what it failed with. */
  async answered(key: string): Promise<void> {
    const turn = this.#turns.get(key);
    if (turn?.front === 'asking') await join(turn.curious, Infinity, []);
  }

  /** Gives the turn to the next in the queue, or closes it. */
  leave(key: string): void {
    const turn = this.#turns.get(key);
    if (!turn) return;
    tell(turn.curious);
    const [next] = turn.queue;
    if (!next) {
      this.#turns.delete(key);
      return;
    }
    turn.front = 'asking';
    next.wake();
  }

  /** The store did not answer the front: everybody behind would meet the same, one time-out after the other. */
  fail(key: string, error: Error): void {
    const turn = this.#turns.get(key);
    for (const waiter of [...(turn?.curious ?? []), ...(turn?.queue ?? [])]) waiter.fail(error);
  }

  /** Lets everybody through, because there is nothing left to guard. */
  open(): void {
    for (const { queue } of this.#turns.values()) tell(queue);
    this.#turns.clear();
  }

  setFront(key: string, front: Front): void {
    const turn = this.#turns.get(key);
    if (!turn) return;
    turn.front = front;
    if (front !== 'asking') tell(turn.curious);
  }

  /** Whether a caller of this process has the lock. */
  isInside(key: string): boolean {
    return this.#turns.get(key)?.front === 'inside';
  }

  /** How many callers of this process wait for the key. */
  waiters(key: string): number {
    const turn = this.#turns.get(key);
    return turn ? turn.queue.size + (turn.front === 'waiting' ? 1 : 0) : 0;
  }
}

function join(line: Set<Waiter>, untilMs: number, signals: readonly AbortSignal[]): Promise<boolean> {
  let waiter: Waiter;
  return waitFor(
    untilMs,
    signals,
    (wake, fail) => line.add((waiter = { wake, fail })),
    () => line.delete(waiter),
  );
}

function tell(line: Set<Waiter>): void {
  for (const { wake } of [...line]) wake();
}
