import { AsyncLocalStorage } from 'node:async_hooks';
import type { Subscriber } from 'rxjs';
import { observerIn } from '../clock/observer-in.js';

export type Reader = ReturnType<typeof observerIn>;

/** Who has subscribed to a stream. Each gets the messages in the async context of its subscription. */
export class Readers {
  readonly #all = new Set<Reader>();

  get size(): number {
    return this.#all.size;
  }

  add(subscriber: Subscriber<unknown>): Reader {
    const reader = observerIn(AsyncLocalStorage.snapshot(), subscriber);
    this.#all.add(reader);
    return reader;
  }

  delete(reader: Reader): void {
    this.#all.delete(reader);
  }

  /** Makes the readers of another stream its own. */
  takeOver(others: Readers): void {
    for (const reader of others.#all) this.#all.add(reader);
    others.#all.clear();
  }

  next(message: unknown): void {
    for (const reader of [...this.#all]) reader.next(message);
  }

  error(reason: unknown): void {
    for (const reader of [...this.#all]) reader.error(reason);
  }

  complete(): void {
    for (const reader of [...this.#all]) reader.complete();
  }
}
