import { waitFor } from '../clock/wait-for.js';

type Wake = () => void;

/** A key that somebody of this process is inside of, or waits for in the store. */
interface Turn {
  /** Those who wait behind, by arrival. */
  readonly queue: Set<Wake>;
  /** Whether the one at the front still waits for the store. */
  frontWaits: boolean;
}

/**
 * Lets the callers of one process through one at a time for each key, first come, first served.
 * So a process sends the store one caller for a key, however many wait.
 */
export class KeyGate {
  readonly #turns = new Map<string, Turn>();

  /** Goes in if nobody of this process is inside or waiting. */
  tryEnter(key: string): boolean {
    if (this.#turns.has(key)) return false;
    this.#turns.set(key, { queue: new Set(), frontWaits: false });
    return true;
  }

  /** Queues for a busy key. Returns false when `untilMs` came first; rejects with the reason of a signal that aborts. */
  enter(key: string, untilMs: number, signals: readonly AbortSignal[]): Promise<boolean> {
    const turn = this.#turns.get(key);
    if (!turn) return Promise.resolve(this.tryEnter(key));
    let wake: Wake;
    return waitFor(
      untilMs,
      signals,
      (done) => turn.queue.add((wake = done)),
      () => turn.queue.delete(wake),
    );
  }

  /** Gives the turn to the next in the queue, or closes it. */
  leave(key: string): void {
    const turn = this.#turns.get(key);
    if (!turn) return;
    const [next] = turn.queue;
    if (!next) {
      this.#turns.delete(key);
      return;
    }
    turn.frontWaits = false;
    next();
  }

  /** The one who is through waits for the store now, and counts as a waiter. */
  frontWaits(key: string): void {
    this.#mark(key, true);
  }

  /** The one who is through has the lock. */
  frontIsInside(key: string): void {
    this.#mark(key, false);
  }

  /** Whether a caller of this process has the lock, and does not wait for the store itself. */
  isInside(key: string): boolean {
    return this.#turns.get(key)?.frontWaits === false;
  }

  /** How many callers of this process wait for the key. */
  waiters(key: string): number {
    const turn = this.#turns.get(key);
    return turn ? turn.queue.size + (turn.frontWaits ? 1 : 0) : 0;
  }

  #mark(key: string, waits: boolean): void {
    const turn = this.#turns.get(key);
    if (turn) turn.frontWaits = waits;
  }
}
