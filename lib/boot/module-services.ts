import type { ModulesContainer } from '@nestjs/core';
import { isInstanceOf } from '../decorators/method/prototypes.js';
import { mistake } from '../errors/mistakes.js';
import { LockService } from '../service/lock.service.js';
import { DEFAULT_MODULE, lockServiceToken } from '../service/lock.tokens.js';
import { providersOf } from './discovery.js';
import { onShutdown } from './shutdown-hook.js';

const REMEDIES = [
  'Import forRoot() once, in the root module: it is global.',
  'Give one of them a name: RedisLockModule.forRoot({ name: "billing" }).',
];

/**
 * Returns the `LockService` of each `RedisLockModule` of the app. Other providers may give it, too: they don't count.
 */
export function servicesIn(modules: ModulesContainer): ReadonlySet<LockService> {
  return new Set(
    [...providersOf(modules.values())].flatMap(({ instance, token }) => {
      const service: unknown = instance;
      return isInstanceOf(service, LockService) && token === lockServiceToken(service.moduleName) ? service : [];
    }),
  );
}

/** Finds modules of the same name. */
export function sameNames(modules: ModulesContainer): readonly string[] {
  const services = [...servicesIn(modules)];
  const names = services.map(({ moduleName }) => moduleName);
  return names
    .filter((name, index) => names.indexOf(name) < index)
    .map((name) => {
      const kinds = new Set(services.filter(({ moduleName }) => moduleName === name).map(isForTests));
      return mistake(`Two RedisLockModules are named "${name}".`, kinds.size > 1 ? inTest(name) : REMEDIES);
    });
}

/** Whether a service is a `TestLockService`, as that of `LockTestingModule` is. */
const isForTests = (service: LockService): boolean => 'simulate' in service;

/** Says how a test replaces the locks of an app, instead of adding others. */
function inTest(name: string): readonly string[] {
  const replaced =
    name === DEFAULT_MODULE
      ? 'overrideProvider(LockService).useClass(TestLockService)'
      : `overrideProvider(getLockServiceToken("${name}")).useValue(new TestLockService({ name: "${name}" }))`;
  return [`In a test, import no LockTestingModule beside the app. Replace the LockService of the app: ${replaced}.`];
}

/**
 * Begins the shutdown of all services as soon as the app shuts down. Nest calls the other hooks only of services that
 * exist now, so this ends those that come later, with a lazy module.
 */
export function endServicesAtShutdown(modules: ModulesContainer): void {
  const atStart = servicesIn(modules);
  const late = () => [...servicesIn(modules)].filter((service) => !atStart.has(service));
  const begin = (): void => {
    for (const service of servicesIn(modules)) service.onModuleDestroy();
  };
  onShutdown(modules, begin, () => Promise.all(late().map((service) => service.onApplicationShutdown())));
}
