import type { ModulesContainer } from '@nestjs/core';
import { lockedMethods } from '../decorators/method/locked-methods.js';
import { giveService, refusedCalls } from '../decorators/instance/service-slot.js';
import { noteEarlierService } from '../decorators/call/service-of.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { mistake, mistakeList } from '../errors/mistakes.js';
import { logger } from '../log/logger.js';
import { mistakesOf } from './boot-checks.js';
import type { Provider } from './discovery.js';
import { lockServiceSlot, lockServiceToken } from '../service/lock.tokens.js';

type Factory = (...dependencies: unknown[]) => unknown;

/**
 * Gives objects that Nest did not construct itself the `LockService` of their `@WithLock` methods. Nest injects it into
 * the others.
 */
export class InstanceWiring {
  readonly #modules: ModulesContainer;

  constructor(modules: ModulesContainer) {
    this.#modules = modules;
  }

  /** @returns what is wrong with the object */
  wire(instance: object, isBuiltByNest = false): readonly string[] {
    const mistakes: string[] = [];
    for (const { module } of lockedMethods(instance)) {
      const value = this.serviceOf(module);
      const slot = lockServiceSlot(module);
      const earlier = (instance as Record<symbol, unknown>)[slot];
      const hasItsOwn = isBuiltByNest && earlier !== undefined;
      if (!value || earlier === value || hasItsOwn) continue;
      if (!giveService(instance, slot, value)) mistakes.push(frozen(instance, isBuiltByNest));
      else if (noteEarlierService(instance, slot, earlier)) logger.warn(shared(instance));
    }
    return mistakes;
  }

  /** Wires what a factory will make: for each request, or for each object that asks for it. */
  wireAll(provider: Provider): void {
    const make = provider.metatype as Factory;
    const checked = new WeakSet<object>();
    provider.metatype = async (...dependencies: unknown[]) => {
      const made = await make(...dependencies);
      if (typeof made !== 'object' || made === null || lockedMethods(made).length === 0) return made;
      const prototype = Object.getPrototypeOf(made) as object;
      const mistakes = [
        ...this.wire(made),
        ...(checked.has(prototype) ? [] : mistakesOf(prototype)),
        ...refusedCalls(made),
      ];
      if (mistakes.length > 0) throw new LockOptionsError(mistakeList(mistakes));
      checked.add(prototype);
      return made;
    };
  }

  /** Returns what the app uses as the service of a module, a test's fake included. */
  serviceOf(moduleName: string): unknown {
    for (const module of this.#modules.values()) {
      const provider = module.providers.get(lockServiceToken(moduleName));
      if (provider) return provider.instance;
    }
    return undefined;
  }
}

function shared(instance: object): string {
  const what =
    `The ${instance.constructor.name} given to Nest also belongs to another app of this process that is still open. ` +
    'Until one of them closes, its @WithLock methods use the store of the app that started last, for both apps.';
  return mistake(what, ['Give each app an object of its own.', 'Close the other app first.']);
}

function frozen(instance: object, isBuiltByNest: boolean): string {
  const type = instance.constructor.name;
  const consequence = "so it can't be given the LockService that its @WithLock methods need.";
  return isBuiltByNest
    ? mistake(`The constructor of ${type} freezes the object, ${consequence}`, [
        "Don't freeze it, or do so in onModuleInit().",
      ])
    : mistake(`The ${type} given to Nest is frozen, ${consequence}`, ['Let Nest build it.', "Don't freeze it."]);
}
