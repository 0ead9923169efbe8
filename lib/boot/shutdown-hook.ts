import type { ModulesContainer } from '@nestjs/core';

/**
 * Calls `begin` as soon as the app shuts down. Nest calls the hooks of the root module first and those of global
 * modules, such as this one, last; and each hook before them may wait for work that holds a lock.
 *
 * @param end ends the services whose hooks Nest doesn't call; Nest waits for it
 */
export function onShutdown(modules: ModulesContainer, begin: () => void, end: () => Promise<unknown>): void {
  const first = [...modules.values()].reduce((root, module) => (module.distance < root.distance ? module : root));
  const hook = Symbol('nest-redis-lock:shutdown');
  first.addProvider({ provide: hook, useValue: { onModuleDestroy: begin, onApplicationShutdown: end } });
  // Nest 12 calls the hooks of a module by level, the highest first; Nest 11 calls all at once.
  Object.assign(first.providers.get(hook)!, { hierarchyLevel: Infinity });
}
