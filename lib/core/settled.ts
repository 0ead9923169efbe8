import { types } from 'node:util';

/**
 * Asks for the result of a lazy promise, such as a query builder, that does its work when it is asked: in the async context of the caller,
 * where an `await` outside would ask in its own. What can't be one is returned as it is.
 */
export function settled<T>(result: T | PromiseLike<T>): T | PromiseLike<T> {
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
