import 'reflect-metadata';

/** What a guarded method answers when it is asked whether it is one. Other Proxies around it pass the question on. */
export const LOCKED = Symbol.for('nest-redis-lock:locked');

/** Bound to an object, a guarded method is a new function. */
const bound = new WeakSet<object>();

/** Whether a call of this function takes a lock: it is a method with `@WithLock`, bound or not. */
export function isLockedMethod(value: unknown): boolean {
  return typeof value === 'function' && ((value as { [LOCKED]?: unknown })[LOCKED] === LOCKED || bound.has(value));
}

/**
 * Marks a guarded method by metadata, which a function that wraps the method has to copy, or a handler would lose its
 * route.
 */
export function markLockedMethod(method: object): void {
  Reflect.defineMetadata(LOCKED, true, method);
}

/**
 * Whether a function has the metadata of a guarded method. It has either wrapped that method, or an override has copied
 * the metadata.
 */
export function hasLockMark(value: unknown): boolean {
  return typeof value === 'function' && Reflect.hasOwnMetadata(LOCKED, value);
}

/** The `bind` of a guarded method. */
export function bindLockedMethod(this: (...args: unknown[]) => unknown, self: unknown, ...args: unknown[]): unknown {
  const method = Function.prototype.bind.call(this, self, ...args) as object;
  bound.add(method);
  return method;
}
