import 'reflect-metadata';

const PARAMETERS = Symbol.for('nest-redis-lock:current-lock');

/**
 * Gives a parameter of a `@WithLock` method the `Lock` that the call holds. Nest knows nothing of it: of a message handler whose
 * parameters have decorators it would take the payload away.
 */
export function CurrentLock(): ParameterDecorator {
  return (prototype, method, index) => {
    if (method === undefined) return;
    Reflect.defineMetadata(PARAMETERS, [...currentLockParameters(prototype, method), index], prototype, method);
  };
}

/** Which parameters of a method `@CurrentLock()` stands on. */
export function currentLockParameters(prototype: object, method: string | symbol): readonly number[] {
  return (Reflect.getOwnMetadata(PARAMETERS, prototype, method) as number[] | undefined) ?? [];
}
