import 'reflect-metadata';
import type { Method } from './checked-method.js';
import { bindLockedMethod, LOCKED, markLockedMethod } from './lock-mark.js';
import type { TransactionWatch } from './transaction-order.js';

/** Runs instead of a method, and gets the method. */
export type Around = (method: Method, self: object, args: unknown[]) => unknown;

/**
 * Puts `around` around a method. The result is a Proxy, so `name` and the rest stay. Its `length` is that without the
 * last parameters that the library fills: Bull takes a handler with two for one that calls back. It has the metadata
 * that decorators below have set, so the order of decorators does not matter.
 *
 * @param filled the parameters that callers leave out
 */
export function wrapMethod(method: Method, around: Around, watch: TransactionWatch, filled: readonly number[]): Method {
  let { length } = method;
  while (filled.includes(length - 1)) length--;
  const wrapped = new Proxy(method, {
    apply: (target, self: object, args: unknown[]) => around(target, self, args),
    get: (target, name, proxy): unknown => {
      if (name === 'constructor') watch.look();
      if (name === 'length') return length;
      return name === LOCKED ? LOCKED : name === 'bind' ? bindLockedMethod : Reflect.get(target, name, proxy);
    },
    getPrototypeOf: (target) => {
      watch.look();
      return Reflect.getPrototypeOf(target);
    },
  });
  for (const key of Reflect.getMetadataKeys(method) as unknown[]) {
    Reflect.defineMetadata(key, Reflect.getMetadata(key, method), wrapped);
  }
  markLockedMethod(wrapped);
  return wrapped;
}
