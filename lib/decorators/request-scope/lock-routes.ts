import { INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import { ownMethod } from '../source/class-text.js';

/**
 * Returns the methods of a class that have an interceptor: the handler that it is bound to, and those that a decorator
 * above has made of it, as `@TsRestHandler` does for a contract of several routes.
 */
export function methodsWith(interceptor: unknown, prototype: object): readonly object[] {
  const methods = Reflect.ownKeys(prototype).map((name) => ownMethod(prototype, name));
  return methods.filter(
    (method): method is object => typeof method === 'function' && interceptorsOf(method).includes(interceptor),
  );
}

/** Returns the interceptors that decorators have bound to a method. */
export function interceptorsOf(method: object): readonly unknown[] {
  return (Reflect.getMetadata(INTERCEPTORS_METADATA, method) ?? []) as unknown[];
}
