import { Injectable, type OnModuleInit } from '@nestjs/common';
import { ModulesContainer } from '@nestjs/core';
import { lockedMethods } from './decorators/locked-methods.js';
import { LockOptionsError } from './errors/lock-options.error.js';
import { LockService } from './lock.service.js';
import { lockServiceSlot } from './lock.tokens.js';

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
    const services = this.#services();
    for (const instance of this.#instances()) {
      for (const { module } of lockedMethods(instance)) {
        const slot = lockServiceSlot(module);
        const service = services.get(module);
        if (service && !(slot in instance)) Object.defineProperty(instance, slot, { value: service });
      }
    }
  }

  #services(): Map<string, LockService> {
    const services = new Map<string, LockService>();
    for (const instance of this.#instances()) {
      if (!(instance instanceof LockService)) continue;
      const { moduleName } = instance;
      const other = services.get(moduleName);
      if (other && other !== instance) {
        throw new LockOptionsError(
          `Two RedisLockModules are named "${moduleName}". Import forRoot() once, or give one of them a name: RedisLockModule.forRoot({ name: "billing" }).`,
        );
      }
      services.set(moduleName, instance);
    }
    return services;
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
