import { now } from '../clock/deadline.js';

/** Tokens of locks that were given back, and whose keys stay for some time all the same. */
export class KeptTokens {
  /** By token: until when. In the order they were added. */
  readonly #until = new Map<string, number>();

  add(token: string, ms: number): void {
    for (const [old, until] of this.#until) {
      if (until > now()) break;
      this.#until.delete(old);
    }
    this.#until.set(token, now() + ms);
  }

  has(token: string): boolean {
    return (this.#until.get(token) ?? 0) > now();
  }
}
