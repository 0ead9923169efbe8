import type { ModulesContainer } from '@nestjs/core';

/**
 * Calls `begin` as soon as the app shuts down. Nest calls the hooks of the root module first and those of global
 * modules, such as ours, last; and each hook before may wait for work that holds a lock.
 *
 * @param end ends what Nest calls no hook of; it waits for that
 */
export function onShutdown(modules: ModulesContainer, begin: () => void, end: () => Promise<unknown>): void {
  const first = [...modules.values()].reduce((root, module) => (module.distance < root.distance ? module : root));
  const hook = Symbol('nest-redis-lock:shutdown');
  first.addProvider({ provide: hook, useValue: { onModuleDestroy: begin, onApplicationShutdown: end } });
  // Nest 12 calls those of a module by level, the highest first; Nest 11 all at once.
  Object.assign(first.providers.get(hook)!, { hierarchyLevel: Infinity });
}
