import { now, roundedDown } from '../clock/deadline.js';
import { TimeWheel } from '../clock/time-wheel.js';

/** Rejects what takes longer than the command time-out. One timer for all commands. */
export class CommandDeadline {
  readonly timeoutMs: number;
  readonly #slotMs: number;
  readonly #wheel = new TimeWheel<() => void>((expired) => expired.forEach((expire) => expire()));

  constructor(timeoutMs: number) {
    this.timeoutMs = timeoutMs;
    this.#slotMs = Math.max(1, timeoutMs / 100);
  }

  /** When a command that begins now must have ended; commands of the same hundredth share a moment. */
  start(): number {
    return roundedDown(now() + this.timeoutMs, this.#slotMs);
  }

  /** Settles as the promise does, or rejects with `onTimeout()` at the deadline. A late result is dropped. */
  race<T>(atMs: number, promise: Promise<T>, onTimeout: () => Error): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const expire = () => reject(onTimeout());
      this.#wheel.add(atMs, expire);
      promise.then(
        (value) => {
          this.#wheel.delete(atMs, expire);
          resolve(value);
        },
        (error: unknown) => {
          this.#wheel.delete(atMs, expire);
          reject(error);
        },
      );
    });
  }
}
