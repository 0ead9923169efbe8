import 'reflect-metadata';
import { prototypeOf } from './prototypes.js';

/** What Nest's `@Inject()` notes of a class: its parameters and properties. */
const INJECTED = ['self:paramtypes', 'self:properties_metadata'];

/** A parameter or a property, with the token that stands in its `@Inject()`. */
interface Injected {
  readonly param?: unknown;
  readonly type?: unknown;
}

/**
 * By slot: the service of the objects that have a value as a property. Undefined for a value that objects of several
 * apps have.
 */
const services = new Map<symbol, WeakMap<object, unknown>>();

/**
 * Notes the properties of an object of a class with `forwardRef()`. Nest makes two objects of such a class: it calls the
 * constructor, and copies the properties of that object to the one that it gives to others and injects properties into.
 * Functions that were made in the constructor have captured the first one.
 */
export function noteCopied(instance: object, slot: symbol, service: unknown): void {
  if (!hasForwardRef(instance)) return;
  let known = services.get(slot);
  if (!known) services.set(slot, (known = new WeakMap<object, unknown>()));
  for (const value of objectsOf(instance))
    known.set(value, !known.has(value) || known.get(value) === service ? service : undefined);
}

/**
 * Finds the service of the object that the properties of this one were copied to, by the objects and functions that both
 * have. Undefined where they don't name one app: there is no such object, or none yet.
 */
export function serviceOfCopy(original: object, slot: symbol): unknown {
  const known = services.get(slot);
  if (!known || !hasForwardRef(original)) return undefined;
  const found = new Set(objectsOf(original).flatMap((value) => known.get(value) ?? []));
  return found.size === 1 ? [...found][0] : undefined;
}

/** Tells whether Nest sees `forwardRef()` in the class of an object: at a parameter of its constructor or a property. */
function hasForwardRef(instance: object): boolean {
  const type: unknown = prototypeOf(instance)?.constructor;
  if (typeof type !== 'function') return false;
  const injected = INJECTED.flatMap((key) => (Reflect.getMetadata(key, type) ?? []) as Injected[]);
  return injected.some(({ param, type: token = param }) => isObject(token) && 'forwardRef' in token);
}

/** Returns the objects and functions that an object has as properties. A getter may do work, and a Proxy may throw. */
function objectsOf(instance: object): readonly object[] {
  try {
    const values = Object.values(Object.getOwnPropertyDescriptors(instance)).map(({ value }) => value as unknown);
    return values.filter((value) => isObject(value) || typeof value === 'function');
  } catch {
    return [];
  }
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;
