import { Scope } from '@nestjs/common';
import { mistake } from '../errors/mistakes.js';
import type { NestModule, Provider } from './discovery.js';
import { MODULE_OPTIONS_TOKEN } from '../service/lock.tokens.js';

/** Refuses options that are created for each request: each request would get connections that nobody closes. */
export function perRequestOptions(modules: Iterable<NestModule>): readonly string[] {
  return [...modules].flatMap(({ providers }) => {
    const options = providers.get(MODULE_OPTIONS_TOKEN);
    if (!options || options.isDependencyTreeStatic()) return [];
    const what =
      `The options of RedisLockModule depend on ${requestScoped(options) ?? 'a request'}, ` +
      'which is created for each request, so each request would get its own LockService and connections.';
    return mistake(what, [
      'Inject only what lives as long as the app.',
      'For several servers, import a module with a name for each: forRootAsync({ name: "billing", … }).',
    ]);
  });
}

/** Finds the request-scoped provider at the end of a chain of dependencies. */
function requestScoped(provider: Provider, seen = new Set<Provider>()): string | undefined {
  if (seen.has(provider)) return undefined;
  seen.add(provider);
  const properties = (provider.getPropertiesMetadata() ?? []).map(({ wrapper }) => wrapper as Provider);
  for (const dependency of [...((provider.getCtorMetadata() ?? []) as Provider[]), ...properties]) {
    const name = requestScoped(dependency, seen);
    if (name) return name;
  }
  return provider.scope === Scope.REQUEST ? String(provider.name) : undefined;
}
