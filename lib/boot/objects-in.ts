import { prototypeOf } from '../decorators/method/prototypes.js';

export const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

/**
 * Returns the object that a value is, and the objects in it when it is an array, in nested arrays too. Skips plain
 * objects in arrays: they have no class, so no locks, and a table of data may have a million of them.
 */
export function objectsIn(value: unknown): Iterable<object> {
  if (!isObject(value)) return [];
  const objects = new Set([value]);
  // A set also visits what is added meanwhile.
  for (const object of objects) for (const item of itemsOf(object)) if (mayHaveLocks(item)) objects.add(item);
  return objects;
}

function mayHaveLocks(item: unknown): item is object {
  return isObject(item) && prototypeOf(item) !== Object.prototype;
}

/** Leaves out the holes of an array: it may have billions of them. A Proxy may refuse to be read. */
function itemsOf(object: object): readonly unknown[] {
  try {
    return Array.isArray(object) ? Object.values(object) : [];
  } catch {
    return [];
  }
}
