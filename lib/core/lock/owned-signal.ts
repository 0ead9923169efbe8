import { AsyncLocalStorage } from 'node:async_hooks';

/**
 * Owns an abort signal whose listeners run in the async context of the caller that read it first, not in that of
 * whatever aborts it.
 */
export class OwnedSignal {
  readonly #controller = new AbortController();
  readonly #inContext = AsyncLocalStorage.snapshot();

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  abort(reason: unknown): void {
    this.#inContext(() => this.#controller.abort(reason));
  }
}
