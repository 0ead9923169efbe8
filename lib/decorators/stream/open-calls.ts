/**
 * Counts the calls of an iterator that have not settled. A reader may ask for several values at once, or leave while it
 * waits for one; only a generator lets one call wait for the other.
 */
export class OpenCalls {
  #open = 0;
  readonly #waiting = new Set<() => void>();

  get areNone(): boolean {
    return this.#open === 0;
  }

  async during<T>(call: () => Promise<T>): Promise<T> {
    this.#open++;
    try {
      return await call();
    } finally {
      this.#open--;
      if (this.areNone) for (const settled of this.#waiting) settled();
    }
  }

  /**
   * Calls `listener` once, when all calls have settled.
   *
   * @param longestMs calls it after that time at the latest, because a call may wait for something that never comes
   */
  onceSettled(listener: () => void, longestMs = Infinity): void {
    if (this.areNone) return listener();
    const timer = longestMs === Infinity ? undefined : setTimeout(() => settled(), longestMs).unref();
    const settled = (): void => {
      clearTimeout(timer);
      this.#waiting.delete(settled);
      listener();
    };
    this.#waiting.add(settled);
  }
}
