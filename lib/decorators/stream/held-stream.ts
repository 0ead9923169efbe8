import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable, type Subscriber } from 'rxjs';
import type { Lock } from '../../core/lock/lock.js';
import { noteEnd } from '../../core/stream-end.js';
import type { LockExceptionFactory } from '../../http/exception-factory.js';
import { attachToRequest } from '../../http/http-request.js';
import type { RequestHold } from '../request/request-hold.js';
import { assertNotLost, StreamHold } from './stream-hold.js';
import { isAsyncIterator, isObservable } from './stream-kind.js';
import { untilUnsubscribed } from './until-unsubscribed.js';

/** The lock of a stream. */
interface StreamLock {
  readonly lock: Lock;
  readonly onLost: 'throw' | 'ignore';
  /** Of the module whose lock it is. */
  readonly exceptionFactory: LockExceptionFactory | undefined;
}

const holds = new WeakMap<object, StreamHold>();

/**
 * Makes an Observable or async iterator that a method has returned keep the lock until it completes, fails, or is left:
 * unsubscribed, or ended by `return()`. It says so only when the key is free. Any other result is returned as it is.
 */
export function holdUntilEnd(result: unknown, by: StreamLock): unknown {
  if (isObservable(result)) return heldObservable(result, by);
  if (isAsyncIterator(result)) return heldIterator(result, by);
  return result;
}

/**
 * Lets an Observable of a request be read only where the lock is not lost, and the request is not over.
 * What ends the request gives the lock back.
 */
export function readWhileHeld(source: Observable<unknown>, hold: RequestHold): Observable<unknown> {
  const inside = AsyncLocalStorage.snapshot();
  return new Observable((subscriber) => {
    try {
      hold.assertReadable();
    } catch (error) {
      throw inside(() => attachToRequest(error, hold.exceptionFactory));
    }
    subscriber.add(failWhenLost(hold, subscriber, inside));
    inside(() => untilUnsubscribed(source, subscriber, inside).subscribe(subscriber));
  });
}

/** Gives back the lock of a stream that nobody will read. */
export function releaseUnread(stream: unknown): void {
  if (typeof stream === 'object' && stream !== null) void holds.get(stream)?.end();
}

function heldObservable(source: Observable<unknown>, by: StreamLock): Observable<unknown> {
  const { lock, onLost } = by;
  const hold = new StreamHold(lock);
  const inside = AsyncLocalStorage.snapshot();
  let readers = 0;
  const leave = (): Promise<void> => (--readers > 0 ? Promise.resolve() : hold.end());

  const held = new Observable((subscriber) => {
    hold.begin(onLost);
    readers++;
    const stopListening = onLost === 'throw' ? failWhenLost(by, subscriber, inside) : undefined;
    const end = (tell: () => void): void => {
      stopListening?.();
      void leave().then(tell);
    };
    const failed = (error: unknown): void => end(() => subscriber.error(error));
    const read = (): unknown =>
      untilUnsubscribed(source, subscriber, inside).subscribe({
        next: (value) => subscriber.next(value),
        error: failed,
        complete: () => end(() => subscriber.complete()),
      });
    try {
      inside(read);
    } catch (error) {
      failed(error);
    }
  });
  return noted(held, hold);
}

function failWhenLost(
  { lock, exceptionFactory }: Omit<StreamLock, 'onLost'>,
  subscriber: Subscriber<unknown>,
  inside: ReturnType<typeof AsyncLocalStorage.snapshot>,
): () => void {
  const { signal } = lock;
  const fail = () => inside(() => subscriber.error(attachToRequest(signal.reason, exceptionFactory)));
  signal.addEventListener('abort', fail, { once: true });
  return () => signal.removeEventListener('abort', fail);
}

function heldIterator(
  source: AsyncIterator<unknown>,
  { lock, onLost, exceptionFactory }: StreamLock,
): AsyncIterableIterator<unknown> {
  const hold = new StreamHold(lock);
  const inside = AsyncLocalStorage.snapshot();

  const step = async (go: () => Promise<IteratorResult<unknown>>): Promise<IteratorResult<unknown>> => {
    if (hold.hasEnded) return { done: true, value: undefined };
    try {
      hold.begin(onLost);
      const result = await inside(go);
      if (onLost === 'throw' && !hold.hasEnded) assertNotLost(lock);
      if (result.done) await hold.end();
      return result;
    } catch (error) {
      await hold.end();
      if (error === lock.lost) void inside(async () => source.return?.()).catch(() => undefined);
      throw attachToRequest(error, exceptionFactory);
    }
  };
  const held: AsyncIterableIterator<unknown> = {
    next: (...sent: [] | [unknown]) => step(() => source.next(...sent)),
    return: (value: unknown) => step(async () => source.return?.(value) ?? { done: true, value }),
    throw: (error: unknown) =>
      step(() => {
        if (!source.throw) throw error;
        return source.throw(error);
      }),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
  return noted(held, hold);
}

function noted<T extends object>(held: T, hold: StreamHold): T {
  holds.set(held, hold);
  return noteEnd(held, hold.ended);
}
