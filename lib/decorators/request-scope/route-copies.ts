import { LockOptionsError } from '../../errors/lock-options.error.js';
import { ownMethod } from '../source/class-text.js';
import { methodName } from './method-name.js';

/** The description of the symbol under which `@ts-rest/nest` notes the route of a method. */
const ROUTE = 'ts-rest-app-route';

/**
 * Refuses `@WithLock` above `@TsRestHandler`. For several routes that has made a method for each of them, and they call
 * the method without what stands above. For one route it calls what the handler returns outside of a request's lock,
 * which ends when the client leaves.
 *
 * @throws LockOptionsError
 */
export function refuseAboveRoutes(prototype: object, name: string | symbol, scope: 'call' | 'request'): void {
  const prefix = `${String(name)}_`;
  const isOfRoute = (other: string): boolean =>
    other.startsWith(prefix) && routeKeyOf(ownMethod(prototype, other)) === other.slice(prefix.length);
  const isAboveOne = scope === 'request' && routeKeyOf(ownMethod(prototype, name)) === null;
  if (!isAboveOne && !Object.getOwnPropertyNames(prototype).some(isOfRoute)) return;
  throw new LockOptionsError(
    `@WithLock on ${methodName(prototype, name)}() stands above @TsRestHandler, so the lock would not cover ` +
      "what a route does. Write it below, with scope: 'request'.",
  );
}

/** Returns the name of the route that a method was made for; null if it is the only one, undefined if it has none. */
function routeKeyOf(method: unknown): unknown {
  if (typeof method !== 'function') return undefined;
  const key = (Reflect.getOwnMetadataKeys(method) as unknown[]).find(
    (key) => typeof key === 'symbol' && key.description === ROUTE,
  );
  const route: unknown = key === undefined ? undefined : Reflect.getOwnMetadata(key, method);
  return typeof route === 'object' && route !== null && 'routeKey' in route ? route.routeKey : undefined;
}
