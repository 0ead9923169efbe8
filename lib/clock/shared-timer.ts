import { atRoot } from './root-context.js';

/**
 * One timer for many calls, outside of all requests. It counts as not set when a test has replaced the timers of the
 * process since, as fake timers do: then it comes only when the test puts them back.
 */
export class SharedTimer {
  #timer: NodeJS.Timeout | undefined;
  #setBy = setTimeout;

  get isSet(): boolean {
    return this.#timer !== undefined && this.#setBy === setTimeout;
  }

  /** Sets it to call `done` in that many ms, and not when it was to be called before. */
  set(ms: number, done: () => void): NodeJS.Timeout {
    this.clear();
    const setBy = (this.#setBy = setTimeout);
    const timer = atRoot(() =>
      setTimeout(() => {
        if (this.#timer === timer) this.#timer = undefined;
        // Otherwise it is cleared, or set again: by other timers, that may not come.
        else if (!this.#timer || this.#setBy === setBy) return;
        done();
      }, ms),
    );
    return (this.#timer = timer);
  }

  clear(): void {
    if (this.isSet) clearTimeout(this.#timer);
    this.#timer = undefined;
  }
}
