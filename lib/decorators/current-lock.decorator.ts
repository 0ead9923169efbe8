import 'reflect-metadata';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { inheritedMetadata } from './method/prototypes.js';
import { refuseStandard } from './method/standard-decorator.js';

const PARAMETERS = Symbol.for('nest-redis-lock:current-lock');
const METHODS = Symbol.for('nest-redis-lock:current-lock-methods');

/** A method that has `@CurrentLock()` on a parameter. */
export interface CurrentLockMethod {
  /** The prototype it stands on. */
  readonly owner: object;
  readonly name: string | symbol;
}

/**
 * Fills a parameter of a `@WithLock` method with the `Lock` that the call holds. Nest does not see this decorator: it
 * would pass no payload to a message handler whose parameters have decorators.
 *
 * @throws LockOptionsError when the class is defined, if it does not stand on a parameter of a method of an instance
 */
export function CurrentLock(): ParameterDecorator;
export function CurrentLock(...given: readonly unknown[]): ParameterDecorator {
  if (given.length > 0)
    throw new LockOptionsError('@CurrentLock stands there without its brackets: write @CurrentLock().');
  return (prototype, method, index: unknown) => {
    refuseStandard('CurrentLock', method);
    const type = typeof prototype === 'function' ? prototype : prototype.constructor;
    const wrong =
      method === undefined
        ? 'its constructor'
        : typeof prototype === 'function'
          ? `the static ${String(method)}()`
          : undefined;
    if (wrong)
      throw new LockOptionsError(
        `@CurrentLock() of ${type.name} stands on a parameter of ${wrong}, which takes no lock.`,
      );
    if (typeof index !== 'number')
      throw new LockOptionsError(`@CurrentLock() stands on ${type.name}.${String(method)}, which is no parameter.`);
    const methods = [...currentLockMethods(prototype), { owner: prototype, name: method! }];
    Reflect.defineMetadata(METHODS, methods, prototype);
    Reflect.defineMetadata(PARAMETERS, [...currentLockParameters(prototype, method!), index], prototype, method!);
  };
}

/** Which parameters of a method `@CurrentLock()` stands on. */
export function currentLockParameters(prototype: object, method: string | symbol): readonly number[] {
  return (Reflect.getOwnMetadata(PARAMETERS, prototype, method) as number[] | undefined) ?? [];
}

/** The methods that have it, inherited ones included. */
export function currentLockMethods(prototype: object): readonly CurrentLockMethod[] {
  return inheritedMetadata<CurrentLockMethod[]>(METHODS, prototype) ?? [];
}
