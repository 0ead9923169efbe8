import { isObservable, Observable } from 'rxjs';
import { abandon, isAsyncIterator } from './held-stream.js';

/** Calls when somebody subscribes, so that a method can return an Observable before it has its lock. `unsubscribed` ends the wait. */
export function lazyObservable(call: (unsubscribed: AbortSignal) => Promise<unknown>): Observable<unknown> {
  return new Observable((subscriber) => {
    const unsubscribed = new AbortController();
    call(unsubscribed.signal).then(
      (result) => {
        if (subscriber.closed) return abandon(result);
        if (isObservable(result)) return void subscriber.add(result.subscribe(subscriber));
        subscriber.next(result);
        subscriber.complete();
      },
      (error: unknown) => subscriber.error(error),
    );
    return () => unsubscribed.abort();
  });
}

/** Lets a promise of an async iterator be read as the iterator itself: its method says that it returns one. */
export function readable(promise: Promise<unknown>): Promise<unknown> & AsyncIterable<unknown> {
  return Object.assign(promise, { [Symbol.asyncIterator]: () => lazyIterator(() => promise) });
}

/** Calls when somebody asks for the first value, as an async generator does. */
export async function* lazyIterator(call: () => Promise<unknown>): AsyncGenerator<unknown, unknown, unknown> {
  const result = await call();
  if (isAsyncIterator(result)) return yield* result as AsyncGenerator<unknown, unknown, unknown>;
  if (result !== undefined) yield result;
  return undefined;
}
