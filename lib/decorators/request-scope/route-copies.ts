import { LockOptionsError } from '../../errors/lock-options.error.js';
import { methodName } from '../method/method-name.js';
import { ownMethod } from '../source/class-text.js';
import { interceptorsOf } from './lock-routes.js';

/** The interceptors that call what a handler returns, as `@TsRestHandler` and `@Implement` of oRPC bind them. */
const CALLERS = new Map([
  ['TsRestHandlerInterceptor', '@TsRestHandler'],
  ['ImplementInterceptor', '@Implement'],
]);

/** The description of the symbol under which `@ts-rest/nest` notes the route of a method. */
const ROUTE = 'ts-rest-app-route';

/**
 * Refuses `@WithLock` above a decorator that calls what the handler returns. It would call that outside of a request's
 * lock, which ends when the client leaves. And for several routes, `@TsRestHandler` has made a method for each, which
 * calls the handler without what stands above.
 *
 * @throws LockOptionsError
 */
export function refuseAboveRoutes(prototype: object, name: string | symbol, scope: 'call' | 'request'): void {
  const by = hasCopies(prototype, name)
    ? '@TsRestHandler'
    : scope === 'request'
      ? callerOf(prototype, name)
      : undefined;
  if (by === undefined) return;
  throw new LockOptionsError(
    `@WithLock on ${methodName(prototype, name)}() stands above ${by}, so the lock would not cover ` +
      "what a route does. Write it below, with scope: 'request'.",
  );
}

function callerOf(prototype: object, name: string | symbol): string | undefined {
  const names = interceptorsOf(ownMethod(prototype, name) as object).map((type) =>
    typeof type === 'function' ? type.name : '',
  );
  return names.map((name) => CALLERS.get(name)).find(Boolean);
}

function hasCopies(prototype: object, name: string | symbol): boolean {
  const prefix = `${String(name)}_`;
  return Object.getOwnPropertyNames(prototype).some(
    (other) => other.startsWith(prefix) && routeKeyOf(ownMethod(prototype, other)) === other.slice(prefix.length),
  );
}

/** Returns the name of the route that a method was made for, if it is one of several. */
function routeKeyOf(method: unknown): unknown {
  if (typeof method !== 'function') return undefined;
  const key = (Reflect.getOwnMetadataKeys(method) as unknown[]).find(
    (key) => typeof key === 'symbol' && key.description === ROUTE,
  );
  const route: unknown = key === undefined ? undefined : Reflect.getOwnMetadata(key, method);
  return typeof route === 'object' && route !== null && 'routeKey' in route ? route.routeKey : undefined;
}
