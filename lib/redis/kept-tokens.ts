import { now } from '../clock/deadline.js';
import { Sweep } from '../store/sweep.js';

/** Tokens of locks that were given back, and whose keys stay for some time all the same. */
export class KeptTokens {
  /** By token: until when. */
  readonly #until = new Map<string, number>();
  readonly #sweep = new Sweep(this.#until, (until) => until <= now());

  add(token: string, ms: number): void {
    this.#sweep.ifDue();
    this.#until.set(token, now() + ms);
  }

  has(token: string): boolean {
    return (this.#until.get(token) ?? 0) > now();
  }
}
