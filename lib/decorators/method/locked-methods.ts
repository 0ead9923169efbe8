import 'reflect-metadata';
import type { ReturnKind } from './checked-method.js';
import { classPrototypeOf, inheritedMetadata, ownerOf } from './prototypes.js';

/** A method with `@WithLock`, as the boot checks see it. */
export interface LockedMethod {
  /** The prototype that has the method. */
  readonly owner: object;
  readonly name: string | symbol;
  /** The name of the `RedisLockModule` whose locks it takes. */
  readonly module: string;
  /** The key as it was given: a template, several, or a function. */
  readonly key: unknown;
  readonly scope: 'call' | 'request';
  readonly kind: ReturnKind;
  /** Whether it has `onTimeout: 'skip'`. */
  readonly skips: boolean;
  /** What is wrong with its decorator: the app does not start then, and its calls are refused. */
  readonly mistakes: string | undefined;
  /** Names the package that has put a transaction around the lock. Undefined where there is none. */
  readonly transaction: () => string | undefined;
}

const METHODS = Symbol.for('nest-redis-lock:methods');
const owners = new Set<WeakRef<object>>();

/** Adds a method to the list of its class. */
export function noteLockedMethod(prototype: object, method: LockedMethod): void {
  if (!Reflect.hasOwnMetadata(METHODS, prototype)) owners.add(new WeakRef(prototype));
  Reflect.defineMetadata(METHODS, [...lockedMethods(prototype), method], prototype);
}

/** Returns the methods of a prototype with `@WithLock`, inherited ones included. */
export function lockedMethods(prototype: object): readonly LockedMethod[] {
  return inheritedMetadata<LockedMethod[]>(METHODS, prototype) ?? [];
}

/** Returns the methods with `@WithLock` of an object's class. */
export function lockedMethodsOf(instance: object): readonly LockedMethod[] {
  return lockedMethods(classPrototypeOf(instance) ?? instance);
}

/** Returns the prototypes of all classes of this process that have such methods. */
export function lockOwners(): readonly object[] {
  return [...owners].map((owner) => owner.deref()).filter((owner) => owner !== undefined);
}

/** Tells whether a prototype has a method of this name with `@WithLock`. */
export function isLockedAt(prototype: object, owner: object, name: string | symbol): boolean {
  return lockedMethods(prototype).some((method) => method.owner === owner && method.name === name);
}

/** Tells whether calls reach this method, directly or by `super`. */
export function isReached(prototype: object, { owner, name }: LockedMethod): boolean {
  const first = ownerOf(prototype, name);
  return first === owner || !lockedMethods(prototype).some((method) => method.name === name && method.owner === first);
}
