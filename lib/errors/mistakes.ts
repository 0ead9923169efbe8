import { LockOptionsError } from './lock-options.error.js';

/** Writes what would break a lock, and what can be done, in the form of Nest's own messages. */
export function mistake(what: string, remedies: readonly string[]): string {
  return `${what}\n\nPotential solutions:\n${remedies.map((remedy) => `- ${remedy}`).join('\n')}`;
}

/** Collects mistakes, so that one error reports all of them. */
export class Mistakes {
  readonly #texts: string[] = [];

  /** Returns what `make` returns; undefined when it throws a `LockOptionsError`, which is noted. */
  try<T>(make: () => T): T | undefined {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof LockOptionsError)) throw error;
      this.#texts.push(error.detail);
      return undefined;
    }
  }

  /** The error with all mistakes; undefined when there are none. */
  get error(): LockOptionsError | undefined {
    return this.#texts.length > 0 ? new LockOptionsError(mistakeList(this.#texts)) : undefined;
  }
}

/** Joins mistakes into one text, each of them once. */
export function mistakeList(texts: readonly string[]): string {
  return [...new Set(texts)].join('\n\n');
}
