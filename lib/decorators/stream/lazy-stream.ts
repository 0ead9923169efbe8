import { Observable } from 'rxjs';
import { leaveUnread } from '../../core/result-work.js';
import { isAsyncIterable, isObservable } from './stream-kind.js';
import { throwInto } from './throw-into.js';

/**
 * Makes an Observable that calls when somebody subscribes, so a method can return it before it has its lock.
 * `unsubscribed` ends the wait.
 */
export function lazyObservable(call: (unsubscribed: AbortSignal) => Promise<unknown>): Observable<unknown> {
  return new Observable((subscriber) => {
    const unsubscribed = new AbortController();
    call(unsubscribed.signal).then(
      (result) => {
        if (subscriber.closed) return leaveUnread(result);
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
 * So can what a tracer around the method makes of it by `then()` or `finally()`.
 */
export function promiseOrIterator(promise: Promise<unknown>): IterablePromise {
  return Object.assign(promise, ITERABLE);
}

type IterablePromise = Promise<unknown> & AsyncIterable<unknown>;

const ITERABLE = {
  then(this: Promise<unknown>, ...handlers: Parameters<Promise<unknown>['then']>): IterablePromise {
    // Not that of the global Promise, which may be another one, as with zone.js.
    const native = Object.getPrototypeOf(this) as Promise<unknown>;
    return promiseOrIterator(native.then.apply(this, handlers));
  },
  [Symbol.asyncIterator](this: Promise<unknown>): AsyncGenerator<unknown, unknown, unknown> {
    // The reader gets the error with its first value, however late it asks for that.
    this.catch(() => undefined);
    return lazyIterator(() => this.then(iterable));
  },
};

/** @throws TypeError when it can't be iterated, as the promise of an SDK with an iterator of its own */
function iterable(result: unknown): unknown {
  if (result === undefined || isAsyncIterable(result)) return result;
  if (Symbol.iterator in Object(result)) return each(result as Iterable<unknown>);
  throw new TypeError(
    'What a method with @WithLock, or its "onTimeout", returned can\'t be read by "for await". Await the call; ' +
      'or iterate inside the method, and make it "async *".',
  );
}

/**
 * Makes an iterator that calls when somebody asks for the first value, as an async generator does. `left`, by
 * `return()` or `throw()`, ends the wait. It passes all on to what the call has returned, at once: a `return()` must
 * not wait for a `next()` that never settles.
 */
export function lazyIterator(call: (left: AbortSignal) => Promise<unknown>): AsyncGenerator<unknown, unknown, unknown> {
  const left = new AbortController();
  let source: Promise<AsyncIterator<unknown>> | undefined;
  let isLeft = false;
  const begin = async (): Promise<AsyncIterator<unknown>> => {
    try {
      const result = await call(left.signal);
      isLeft = left.signal.aborted;
      return isAsyncIterable(result) ? result[Symbol.asyncIterator]() : only(result);
    } catch (error) {
      return left.signal.aborted && error === left.signal.reason ? only(undefined) : failing(error);
    }
  };
  const leave = (): Promise<AsyncIterator<unknown>> => {
    left.abort();
    return (source ??= Promise.resolve(only(undefined)));
  };
  // A generator, so that readers find on it what each generator has.
  return Object.assign(only(undefined), {
    next: async (...sent: [] | [unknown]): Promise<IteratorResult<unknown>> => {
      const iterator = await (source ??= begin());
      return isLeft ? { done: true, value: undefined } : iterator.next(...sent);
    },
    return: async (value: unknown): Promise<IteratorResult<unknown>> => {
      const iterator = await leave();
      return iterator.return?.(value) ?? { done: true, value };
    },
    throw: async (error: unknown): Promise<IteratorResult<unknown>> => throwInto(await leave(), error),
  });
}

async function* each(values: Iterable<unknown>): AsyncGenerator<unknown, unknown, unknown> {
  yield* values;
  return undefined;
}

async function* only(value: unknown): AsyncGenerator<unknown, unknown, unknown> {
  if (value !== undefined) yield value;
  return undefined;
}

// eslint-disable-next-line require-yield -- an iterator that fails at its first value
async function* failing(error: unknown): AsyncGenerator<unknown, unknown, unknown> {
  throw error;
}
