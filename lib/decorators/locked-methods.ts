import 'reflect-metadata';

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
  /** The method with the lock around it. */
  readonly locked: object;
}

const METHODS = Symbol.for('nest-redis-lock:methods');

export function noteLockedMethod(prototype: object, method: LockedMethod): void {
  Reflect.defineMetadata(METHODS, [...lockedMethods(prototype), method], prototype);
}

/** The methods of an object that `@WithLock` guards, inherited ones included. */
export function lockedMethods(object: object): readonly LockedMethod[] {
  return (Reflect.getMetadata(METHODS, object) as LockedMethod[] | undefined) ?? [];
}
