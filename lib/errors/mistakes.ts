import { LockOptionsError } from './lock-options.error.js';

/** Says what would break a lock, and what can be done, in the form of Nest's own messages. */
export function mistake(what: string, remedies: readonly string[]): string {
  return `${what}\n\nPotential solutions:\n${remedies.map((remedy) => `- ${remedy}`).join('\n')}`;
}

/** Collects mistakes, so that all of them are told at once. */
export class Mistakes {
  readonly #texts: string[] = [];

  /** Returns what `make` returns. Undefined when it throws a LockOptionsError, which is noted. */
  try<T>(make: () => T): T | undefined {
    try {
      return make();
    } catch (error) {
      if (!(error instanceof LockOptionsError)) throw error;
      this.#texts.push(error.detail);
      return undefined;
    }
  }

  /** Tells all that were noted. Undefined when all is well. */
  get error(): LockOptionsError | undefined {
    return this.#texts.length > 0 ? new LockOptionsError(mistakeList(this.#texts)) : undefined;
  }
}

/** One text of all mistakes. One that is found twice is told once. */
export function mistakeList(texts: readonly string[]): string {
  return [...new Set(texts)].join('\n\n');
}
