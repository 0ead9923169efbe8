import 'reflect-metadata';

/** The property by which a method with `@WithLock` is recognized. Other Proxies around the method pass it through. */
export const LOCKED = Symbol.for('nest-redis-lock:locked');

/** The functions that `bind` made of such methods. */
const bound = new WeakSet<object>();

/** Tells whether a call of this function takes a lock: it is a method with `@WithLock`, bound or not. */
export function isLockedMethod(value: unknown): boolean {
  return isUnboundLockedMethod(value) || (typeof value === 'function' && bound.has(value));
}

/** Tells whether a function is a method with `@WithLock` that takes its lock from the object that it is called on. */
export function isUnboundLockedMethod(value: unknown): boolean {
  return typeof value === 'function' && (value as { [LOCKED]?: unknown })[LOCKED] === LOCKED;
}

/**
 * Marks a method by metadata. A function that wraps the method has to copy the metadata, because a handler would lose
 * its route otherwise.
 */
export function markLockedMethod(method: object): void {
  Reflect.defineMetadata(LOCKED, true, method);
}

/** Tells whether a function has the mark: it wraps such a method, or is an override with copied metadata. */
export function hasLockMark(value: unknown): boolean {
  return typeof value === 'function' && Reflect.hasOwnMetadata(LOCKED, value);
}

/** Replaces `bind` of a method with `@WithLock`. */
export function bindLockedMethod(this: (...args: unknown[]) => unknown, self: unknown, ...args: unknown[]): unknown {
  const method = Function.prototype.bind.call(this, self, ...args) as object;
  bound.add(method);
  return method;
}
