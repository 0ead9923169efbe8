import { lockedMethods } from '../decorators/method/locked-methods.js';
import { classPrototypeOf } from '../decorators/method/prototypes.js';

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/**
 * Returns the object that a value is. When it is an array, also returns the objects in it, and in nested arrays: all of
 * a class with locks, and one of each other class, so that the class can be checked. A table of data may have a million
 * rows.
 */
export function objectsIn(value: unknown): Iterable<object> {
  if (!isObject(value)) return [];
  const objects = new Set([value]);
  const arrays = new Set([value]);
  const withLocks = new Map([[Object.prototype, false]]);
  // A set also visits what is added meanwhile.
  for (const array of arrays)
    for (const item of itemsOf(array)) {
      if (!isObject(item)) continue;
      if (isArray(item)) arrays.add(item);
      if (isWanted(item, withLocks)) objects.add(item);
    }
  return objects;
}

/** Looks once at each prototype, and notes whether it has locks. */
function isWanted(item: object, withLocks: Map<object, boolean>): boolean {
  const prototype = classPrototypeOf(item);
  if (!prototype) return false;
  const known = withLocks.get(prototype);
  if (known === undefined) withLocks.set(prototype, lockedMethods(prototype).length > 0);
  return known ?? true;
}

/** Leaves out the holes of an array: it may have billions of them. A Proxy may refuse to be read. */
function itemsOf(object: object): readonly unknown[] {
  try {
    return isArray(object) ? Object.values(object) : [];
  } catch {
    return [];
  }
}

/** A Proxy may have been revoked. */
function isArray(object: object): boolean {
  try {
    return Array.isArray(object);
  } catch {
    return false;
  }
}
