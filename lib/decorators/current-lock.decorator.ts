import 'reflect-metadata';
import { createParamDecorator } from '@nestjs/common';

const PARAMETERS = Symbol.for('nest-redis-lock:current-lock');

/** Keeps a place for the parameter in Nest's route handlers; the lock itself comes from `@WithLock`, which takes it later. */
const routeParameter = createParamDecorator(() => undefined);

/** Gives a parameter of a `@WithLock` method the `Lock` that the call holds. */
export function CurrentLock(): ParameterDecorator {
  return (prototype, method, index) => {
    routeParameter()(prototype, method, index);
    if (method === undefined) return;
    Reflect.defineMetadata(PARAMETERS, [...currentLockParameters(prototype, method), index], prototype, method);
  };
}

/** Which parameters of a method `@CurrentLock()` stands on. */
export function currentLockParameters(prototype: object, method: string | symbol): readonly number[] {
  return (Reflect.getOwnMetadata(PARAMETERS, prototype, method) as number[] | undefined) ?? [];
}
