import { AsyncLocalStorage } from 'node:async_hooks';
import type { LockEvent } from './lock-event.js';

/** Gets the events of locks. */
export interface LockEventSubscriber {
  next(event: LockEvent): void;
  complete(): void;
}

interface Subscription {
  /** Later ones have larger numbers. */
  readonly number: number;
  /** Runs the subscriber in the async context it subscribed in: events are emitted in that of anybody. */
  readonly inContext: ReturnType<typeof AsyncLocalStorage.snapshot>;
}

/** The subscribers that follow a call. */
export interface Audience {
  /** The number of the call. */
  readonly id: number;
  /** The number of the subscription that came last; those that came later know nothing of the call. */
  readonly latest: number;
}

/** Emits what happens to the locks of a service. While nobody subscribes, no event is made. */
export class LockEvents {
  readonly #subscribers = new Map<LockEventSubscriber, Subscription>();
  #latest = 0;
  #calls = 0;
  #isComplete = false;

  get hasSubscribers(): boolean {
    return this.#subscribers.size > 0;
  }

  /** The number of the subscription that came last. */
  get latest(): number {
    return this.#latest;
  }

  /** Returns the number of one more call. */
  nextCall(): number {
    return ++this.#calls;
  }

  add(subscriber: LockEventSubscriber): void {
    if (this.#isComplete) subscriber.complete();
    else this.#subscribers.set(subscriber, { number: ++this.#latest, inContext: AsyncLocalStorage.snapshot() });
  }

  delete(subscriber: LockEventSubscriber): void {
    this.#subscribers.delete(subscriber);
  }

  /** Emits an event to all subscribers, or to those that came no later than that one. */
  emit(event: LockEvent, latest = Infinity): void {
    for (const [subscriber, { number, inContext }] of [...this.#subscribers])
      if (number <= latest) inContext(() => subscriber.next(event));
  }

  /** Tells the subscribers that no more events follow. */
  complete(): void {
    this.#isComplete = true;
    for (const [subscriber, { inContext }] of [...this.#subscribers]) inContext(() => subscriber.complete());
  }
}
