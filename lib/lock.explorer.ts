import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { lockedMethods } from './decorators/locked-methods.js';
import { LockOptionsError } from './errors/lock-options.error.js';
import { LockService } from './lock.service.js';
import { lockServiceSlot, lockServiceToken } from './lock.tokens.js';

/**
 * Looks through the app at boot. It wires objects that Nest did not construct itself (`useFactory`, `useValue`),
 * and refuses two modules of one name. It wraps nothing: `@WithLock` did that when the class was defined.
 */
@Injectable()
export class LockExplorer implements OnModuleInit {
  readonly #modules: ModulesContainer;

  constructor(modules: ModulesContainer) {
    this.#modules = modules;
  }

  onModuleInit(): void {
    this.#refuseTwins();
    for (const { instance, isBuiltByNest } of this.#instances()) {
      if (isBuiltByNest) continue;
      for (const { module } of lockedMethods(instance)) this.#wire(instance, module);
    }
  }

  #wire(instance: object, moduleName: string): void {
    const value = this.#serviceOf(moduleName);
    if (value && !Object.isExtensible(instance)) {
      throw new LockOptionsError(`The ${instance.constructor.name} given to Nest is frozen, so it can't be given the LockService its @WithLock methods need. Let Nest build it, or don't freeze it.`);
    }
    // Writable, as an object given by useValue can live on in the next app of a test.
    if (value) Object.defineProperty(instance, lockServiceSlot(moduleName), { value, writable: true, configurable: true });
  }

  /** What the app has for the service, a fake of a test included. */
  #serviceOf(moduleName: string): unknown {
    for (const module of this.#modules.values()) {
      const provider = module.providers.get(lockServiceToken(moduleName));
      if (provider) return provider.instance;
    }
    return undefined;
  }

  #refuseTwins(): void {
    const seen = new Map<string, LockService>();
    for (const { instance } of this.#instances()) {
      if (!(instance instanceof LockService)) continue;
      const { moduleName } = instance;
      if ((seen.get(moduleName) ?? instance) !== instance) {
        throw new LockOptionsError(
          `Two RedisLockModules are named "${moduleName}". Import forRoot() once, or give one of them a name: RedisLockModule.forRoot({ name: "billing" }).`,
        );
      }
      seen.set(moduleName, instance);
    }
  }

  *#instances(): Iterable<{ instance: object; isBuiltByNest: boolean }> {
    for (const module of this.#modules.values()) {
      for (const wrapper of [...module.providers.values(), ...module.controllers.values()]) {
        const instance: unknown = wrapper.isDependencyTreeStatic() ? wrapper.instance : undefined;
        if (typeof instance === 'object' && instance !== null) yield { instance, isBuiltByNest: !wrapper.isNotMetatype };
      }
    }
  }
}
