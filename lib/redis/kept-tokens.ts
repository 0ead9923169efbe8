import { now } from '../clock/deadline.js';

/** Sweeping costs as much as there are tokens, so it is done when their number has doubled. */
const FIRST_SWEEP_AT = 1024;

/** Tokens of locks that were given back, and whose keys stay for some time all the same. */
export class KeptTokens {
  /** By token: until when. */
  readonly #until = new Map<string, number>();
  #sweepAt = FIRST_SWEEP_AT;

  add(token: string, ms: number): void {
    if (this.#until.size >= this.#sweepAt) this.#sweep();
    this.#until.set(token, now() + ms);
  }

  has(token: string): boolean {
    return (this.#until.get(token) ?? 0) > now();
  }

  #sweep(): void {
    for (const [token, until] of this.#until) if (until <= now()) this.#until.delete(token);
    this.#sweepAt = Math.max(FIRST_SWEEP_AT, this.#until.size * 2);
  }
}
