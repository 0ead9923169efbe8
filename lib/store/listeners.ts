import type { ForcedUnlock, Granted, LockDetails, StoreListener } from './lock-store.js';

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

  resync(): void {
    for (const listener of this.#all) listener.resync();
  }
}
