import 'reflect-metadata';
import { types } from 'node:util';

/** More prototypes than any class has. A Proxy may name another one for ever. */
const MOST_PROTOTYPES = 1000;

/** Returns the prototype of an object. Undefined where it has none, and where a Proxy refuses to name it. */
export function prototypeOf(object: object): object | undefined {
  try {
    return (Object.getPrototypeOf(object) as object | null) ?? undefined;
  } catch {
    return undefined;
  }
}

/**
 * Returns the prototype of an object's class. A Proxy may name that of a plain object, as each client of Prisma does:
 * its constructor shows its class.
 */
export function classPrototypeOf(object: object): object | undefined {
  const prototype = prototypeOf(object);
  return prototype === Object.prototype && types.isProxy(object) ? prototypeOfConstructor(object) : prototype;
}

function prototypeOfConstructor(object: object): object {
  try {
    const { prototype } = object.constructor as { prototype?: unknown };
    return typeof prototype === 'object' && prototype !== null ? prototype : Object.prototype;
  } catch {
    return Object.prototype;
  }
}

/** Returns a prototype and those above it, as far as they can be read. */
export function* prototypesOf(prototype: object): Generator<object> {
  let owner: object | undefined = prototype;
  for (let count = 0; owner && count < MOST_PROTOTYPES; count++, owner = prototypeOf(owner)) yield owner;
}

/** Returns the metadata of an object or of its prototypes, as far as they can be read. */
export function inheritedMetadata<Value>(key: symbol, object: object): Value | undefined {
  for (const owner of prototypesOf(object)) {
    const value: unknown = Reflect.getOwnMetadata(key, owner);
    if (value !== undefined) return value as Value;
  }
  return undefined;
}

/** Tells whether a value is an object of a class. Does not fail for a Proxy that refuses to be looked at. */
export function isInstanceOf<Type extends object>(value: unknown, { prototype }: { prototype: Type }): value is Type {
  if (typeof value !== 'object' || value === null) return false;
  for (const owner of prototypesOf(value)) if (owner === prototype) return true;
  return false;
}

/**
 * Returns the prototypes with a method of this name: the one that a call reaches, and those that it may reach by
 * `super`.
 */
export function* ownersOf(prototype: object, name: string | symbol): Generator<object> {
  for (const owner of prototypesOf(prototype)) if (owns(owner, name)) yield owner;
}

/** Returns the prototype whose method a call reaches. */
export function ownerOf(prototype: object, name: string | symbol): object | undefined {
  return ownersOf(prototype, name).next().value as object | undefined;
}

function owns(owner: object, name: string | symbol): boolean {
  try {
    return Object.hasOwn(owner, name);
  } catch {
    return false;
  }
}
