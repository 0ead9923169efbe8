import 'reflect-metadata';
import type { ReturnKind } from './checked-method.js';

/** What `@WithLock` notes of a method, for the boot checks. */
export interface LockedMethod {
  /** The prototype it stands on. */
  readonly owner: object;
  readonly name: string | symbol;
  /** The `RedisLockModule` it takes its locks from. */
  readonly module: string;
  /** As it was given: a template, several, or a function. */
  readonly key: unknown;
  readonly scope: 'call' | 'request';
  readonly kind: ReturnKind;
  /** What is wrong with it: the app does not start then, and its calls are refused. */
  readonly mistakes: string | undefined;
  /** What has begun a transaction around the lock, where `@WithLock` stands below it. */
  readonly transaction: () => string | undefined;
}

const METHODS = Symbol.for('nest-redis-lock:methods');
const owners = new Set<WeakRef<object>>();

export function noteLockedMethod(prototype: object, method: LockedMethod): void {
  if (!Reflect.hasOwnMetadata(METHODS, prototype)) owners.add(new WeakRef(prototype));
  Reflect.defineMetadata(METHODS, [...lockedMethods(prototype), method], prototype);
}

/** The methods of an object that `@WithLock` guards, inherited ones included. */
export function lockedMethods(object: object): readonly LockedMethod[] {
  return (Reflect.getMetadata(METHODS, object) as LockedMethod[] | undefined) ?? [];
}

/** The prototypes of all classes of this process that have such methods. */
export function lockOwners(): readonly object[] {
  return [...owners].map((owner) => owner.deref()).filter((owner) => owner !== undefined);
}
