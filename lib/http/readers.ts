import { AsyncLocalStorage } from 'node:async_hooks';
import type { Subscriber } from 'rxjs';
import { observerIn } from '../clock/observer-in.js';

type Observer = ReturnType<typeof observerIn>;

/** Who has subscribed to a stream. Each gets the messages in the async context of its subscription. */
export class Readers {
  readonly #observers = new Set<Observer>();

  get size(): number {
    return this.#observers.size;
  }

  /** Returns what takes the subscriber away. */
  add(subscriber: Subscriber<unknown>): () => void {
    const observer = observerIn(AsyncLocalStorage.snapshot(), subscriber);
    this.#observers.add(observer);
    return () => this.#observers.delete(observer);
  }

  next(message: unknown): void {
    for (const observer of [...this.#observers]) observer.next(message);
  }

  error(reason: unknown): void {
    for (const observer of [...this.#observers]) observer.error(reason);
  }

  complete(): void {
    for (const observer of [...this.#observers]) observer.complete();
  }
}
