import type { ModulesContainer } from '@nestjs/core';
import type { LockService } from '../service/lock.service.js';
import { onLazyModules } from './lazy-modules.js';
import { servicesIn } from './module-services.js';

/** Visits the `LockService` of each `RedisLockModule` of the app; later also those of lazy modules. */
export function everyService(modules: ModulesContainer, visit: (service: LockService) => void): void {
  const visited = new Set<LockService>();
  const visitNew = (): void => {
    for (const service of servicesIn(modules)) {
      if (visited.has(service)) continue;
      visited.add(service);
      visit(service);
    }
  };
  visitNew();
  onLazyModules(modules, visitNew);
}
