import { heldIterator } from './held-iterator.js';
import { heldObservable } from './held-observable.js';
import type { StreamLock } from './stream-hold.js';
import { isAsyncIterator, isObservable } from './stream-kind.js';

/**
 * Makes an Observable or async iterator that a method has returned keep the lock until it completes, fails, or is left:
 * unsubscribed, or ended by `return()`. Its reader learns of the end only when the key is free. Returns any other
 * result as it is.
 */
export function holdUntilEnd(result: unknown, streamLock: StreamLock): unknown {
  if (isObservable(result)) return heldObservable(result, streamLock);
  if (isAsyncIterator(result)) return heldIterator(result, streamLock);
  return result;
}
