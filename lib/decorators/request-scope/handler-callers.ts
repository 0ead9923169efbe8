import { LockOptionsError } from '../../errors/lock-options.error.js';
import type { Method } from '../method/checked-method.js';
import { methodName } from '../method/method-name.js';
import { ownMethod } from '../source/class-text.js';
import { interceptorsOf } from './lock-routes.js';

/** The decorators of ts-rest and oRPC that call what a handler returns, by the name of the interceptor that they bind. */
const CALLERS: ReadonlyMap<unknown, string> = new Map([
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
export function refuseAboveCaller(
  prototype: object,
  name: string | symbol,
  method: Method,
  scope: 'call' | 'request',
): void {
  const isCopied = hasCopies(prototype, name);
  const caller = isCopied ? '@TsRestHandler' : callerOf(method);
  if (!caller || (scope === 'call' && !isCopied)) return;
  throw new LockOptionsError(
    `@WithLock on ${methodName(prototype, name)}() stands above ${caller}, so the lock would not cover ` +
      "what a route does. Write it below, with scope: 'request'.",
  );
}

function callerOf(method: Method): string | undefined {
  return interceptorsOf(method)
    .map((type) => (typeof type === 'function' ? CALLERS.get(type.name) : undefined))
    .find(Boolean);
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
    (one) => typeof one === 'symbol' && one.description === ROUTE,
  );
  const route: unknown = key === undefined ? undefined : Reflect.getOwnMetadata(key, method);
  return typeof route === 'object' && route !== null && 'routeKey' in route ? route.routeKey : undefined;
}
