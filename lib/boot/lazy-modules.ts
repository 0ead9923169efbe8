import { LazyModuleLoader, ModuleRef, type ModulesContainer } from '@nestjs/core';
import { isInstanceOf } from '../decorators/method/prototypes.js';
import { type NestModule, providersOf } from './discovery.js';

/**
 * Checks each lazy module when it is loaded, because Nest calls no hook then. Replaces the `load` of this app's loader
 * by one that rejects with what `check` throws.
 *
 * @param check gets the module and all that it imports
 */
export function onLazyModules(modules: ModulesContainer, check: (loaded: ReadonlySet<NestModule>) => void): void {
  for (const { instance } of providersOf(modules.values())) {
    if (!isInstanceOf(instance, LazyModuleLoader)) continue;
    const load = instance.load.bind(instance);
    instance.load = async (...request) => {
      const ref = await load(...request);
      check(withImports([...modules.values()].filter((module) => module.providers.get(ModuleRef)?.instance === ref)));
      return ref;
    };
  }
}

function withImports(modules: Iterable<NestModule>, found = new Set<NestModule>()): ReadonlySet<NestModule> {
  for (const module of modules) {
    if (found.has(module)) continue;
    found.add(module);
    withImports(module.imports, found);
  }
  return found;
}
