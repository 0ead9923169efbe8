import { aroundCall } from './call/around-call.js';
import { lockCall } from './call/lock-call.js';
import { currentLockParameters } from './current-lock.decorator.js';
import { keyResolver, requestKeyResolver } from './key/key-resolver.js';
import type { ReturnKind } from './method/checked-method.js';
import { methodName } from './method/method-name.js';
import type { Around } from './method/wrap-method.js';
import type { ResolvedDecoratorOptions } from './options/with-lock.options.js';
import { bindRequestLock } from './request-scope/request-lock.js';

/** What `@WithLock` puts around a method, and a further decorator that it binds to the method. */
export interface MethodWrapper {
  readonly around: Around;
  readonly bind?: MethodDecorator;
}

/**
 * Makes the wrapper of a method that holds its lock for each call.
 *
 * @throws LockOptionsError when the key does not fit the method
 */
export function wrapForCall(
  key: unknown,
  prototype: object,
  method: string | symbol,
  kind: ReturnKind,
): (options: ResolvedDecoratorOptions) => MethodWrapper {
  const name = methodName(prototype, method);
  const keyOf = keyResolver(key, prototype, method, name);
  const lockParameters = currentLockParameters(prototype, method);
  return (options) => ({ around: aroundCall(kind, lockCall({ name, keyOf, lockParameters, options })) });
}

/**
 * Makes the wrapper of an HTTP handler that holds its lock until the response has been sent.
 *
 * @throws LockOptionsError for a bad key
 */
export function wrapForRequest(
  key: unknown,
  prototype: object,
  method: string | symbol,
): (options: ResolvedDecoratorOptions) => MethodWrapper {
  const name = methodName(prototype, method);
  const keyOf = requestKeyResolver(key, name);
  const lockParameters = currentLockParameters(prototype, method);
  return (options) => bindRequestLock({ name, prototype, keyOf, lockParameters, options });
}
