import { throwInto } from './throw-into.js';

/**
 * The async iterator that a method has returned, read as `for await` reads it: its `[Symbol.asyncIterator]()` is called
 * once, before its first `next()`, and what that returns is read. If it is left before that, it begins nothing.
 */
export class IteratorSource implements AsyncIterator<unknown> {
  #iterator: AsyncIterator<unknown>;
  /** Returns what is to be read; undefined when it has done so. */
  #open: (() => AsyncIterator<unknown>) | undefined;

  constructor(returned: AsyncIterableIterator<unknown>) {
    this.#iterator = returned;
    this.#open = () => returned[Symbol.asyncIterator]();
  }

  next(...sent: [] | [unknown]): Promise<IteratorResult<unknown>> {
    const open = this.#open;
    this.#open = undefined;
    if (open) this.#iterator = open();
    return this.#iterator.next(...sent);
  }

  async return(value?: unknown): Promise<IteratorResult<unknown>> {
    return this.#iterator.return?.(value) ?? { done: true, value };
  }

  throw(error: unknown): Promise<IteratorResult<unknown>> {
    return throwInto(this.#iterator, error);
  }
}
