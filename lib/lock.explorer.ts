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
    for (const instance of this.#instances()) {
      for (const { module } of lockedMethods(instance)) this.#wire(instance, module);
    }
  }

  #wire(instance: object, moduleName: string): void {
    const slot = lockServiceSlot(moduleName);
    if (slot in instance) return;
    const service = this.#serviceOf(moduleName);
    if (service) Object.defineProperty(instance, slot, { value: service });
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
    for (const instance of this.#instances()) {
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

  *#instances(): Iterable<object> {
    for (const module of this.#modules.values()) {
      for (const wrapper of [...module.providers.values(), ...module.controllers.values()]) {
        const instance: unknown = wrapper.isDependencyTreeStatic() ? wrapper.instance : undefined;
        if (typeof instance === 'object' && instance !== null) yield instance;
      }
    }
  }
}
