import { Observable } from 'rxjs';
import { releaseUnread } from './stream-hold.js';
import { isAsyncIterable, isObservable } from './stream-kind.js';

/**
 * Makes an Observable that calls when somebody subscribes, so a method can return it before it has its lock.
 * `unsubscribed` ends the wait.
 */
export function lazyObservable(call: (unsubscribed: AbortSignal) => Promise<unknown>): Observable<unknown> {
  return new Observable((subscriber) => {
    const unsubscribed = new AbortController();
    call(unsubscribed.signal).then(
      (result) => {
        if (subscriber.closed) return releaseUnread(result);
        if (isObservable(result)) return void subscriber.add(result.subscribe(subscriber));
        subscriber.next(result);
        subscriber.complete();
      },
      (error: unknown) => subscriber.error(error),
    );
    return () => unsubscribed.abort();
  });
}

/**
 * Lets a promise of an async iterator be read as the iterator itself, because the method may be declared to return one.
 */
export function promiseOrIterator(promise: Promise<unknown>): Promise<unknown> & AsyncIterable<unknown> {
  const iterator = () => {
    // The reader gets the error with its first value, however late it asks for that.
    promise.catch(() => undefined);
    return lazyIterator(() => promise);
  };
  return Object.assign(promise, { [Symbol.asyncIterator]: iterator });
}

/**
 * Makes an iterator that calls when somebody asks for the first value, as an async generator does. `left`, by
 * `return()` or `throw()`, ends the wait.
 */
export function lazyIterator(call: (left: AbortSignal) => Promise<unknown>): AsyncGenerator<unknown, unknown, unknown> {
  const left = new AbortController();
  const values = valuesOf(call, left.signal);
  const end = values.return.bind(values);
  const fail = values.throw.bind(values);
  return Object.assign(values, {
    return: (value: unknown) => (left.abort(), end(value)),
    throw: (error: unknown) => (left.abort(), fail(error)),
  });
}

async function* valuesOf(
  call: (left: AbortSignal) => Promise<unknown>,
  left: AbortSignal,
): AsyncGenerator<unknown, unknown, unknown> {
  let result: unknown;
  try {
    result = await call(left);
  } catch (error) {
    if (left.aborted && error === left.reason) return undefined;
    throw error;
  }
  if (left.aborted) return void releaseUnread(result);
  if (isAsyncIterable(result)) return yield* result as AsyncGenerator<unknown, unknown, unknown>;
  if (result !== undefined) yield result;
  return undefined;
}
