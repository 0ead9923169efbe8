import type { ForcedUnlock, Granted, LockDetails, ProcessQuestion, StoreListener } from './lock-store.js';

/** Passes on to all listeners of a store. */
export class Listeners {
  readonly #all: StoreListener[] = [];

  add(listener: StoreListener): void {
    this.#all.push(listener);
  }

  /** Begins the tokens of one of them. */
  get source(): string | undefined {
    return this.#all[0]?.source;
  }

  /** Returns whether one of them waits with this token. */
  granted(token: string, grant: Granted): boolean {
    return this.#all.some((listener) => listener.granted(token, grant));
  }

  offered(token: string): void {
    for (const listener of this.#all) listener.offered(token);
  }

  contended(token: string): void {
    for (const listener of this.#all) listener.contended(token);
  }

  forceReleased(token: string, forced: ForcedUnlock): void {
    for (const listener of this.#all) listener.forceReleased(token, forced);
  }

  describe(token: string): LockDetails | undefined {
    for (const listener of this.#all) {
      const details = listener.describe(token);
      if (details) return details;
    }
    return undefined;
  }

  /** Begin the tokens of each. */
  get sources(): readonly string[] {
    return this.#all.map(({ source }) => source);
  }

  /** Lets the listener of a source answer. Undefined when there is none, or it does not know that kind of question. */
  answer(source: string, question: ProcessQuestion): unknown {
    return this.#all.find((listener) => listener.source === source)?.answer(question);
  }

  resync(): void {
    for (const listener of this.#all) listener.resync();
  }
}
