import { types } from 'node:util';

/**
 * Starts a lazy promise, such as a query builder, which does its work when it is awaited: in the async context of the
 * caller, because an `await` outside would start it in its own. Returns what can't be lazy as it is.
 */
export function startIfLazy<T>(result: T | PromiseLike<T>): T | PromiseLike<T> {
  if ((typeof result !== 'object' && typeof result !== 'function') || result === null) return result;
  const isPlain = types.isPromise(result) && Object.getPrototypeOf(result) === Promise.prototype;
  return isPlain ? result : Promise.resolve(result);
}

export function isThenable(value: unknown): value is PromiseLike<unknown> {
  try {
    return (
      ((typeof value === 'object' && value !== null) || typeof value === 'function') &&
      typeof (value as Partial<PromiseLike<unknown>>).then === 'function'
    );
  } catch {
    return false;
  }
}
