import { Logger } from '@nestjs/common';
import type { ModulesContainer } from '@nestjs/core';
import { lockedMethods } from '../decorators/method/locked-methods.js';
import { giveService, refusedCalls } from '../decorators/instance/service-slot.js';
import { noteEarlierService } from '../decorators/call/service-of.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { mistake, mistakeList } from '../errors/mistakes.js';
import { mistakesOf } from './boot-checks.js';
import type { Provider } from './discovery.js';
import { lockServiceSlot, lockServiceToken } from '../service/lock.tokens.js';

const logger = new Logger('RedisLock');

type Factory = (...dependencies: unknown[]) => unknown;

/**
 * Gives the objects that Nest did not construct itself what it injects into the others: the `LockService` of their
 * `@WithLock` methods.
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
      const had = (instance as Record<symbol, unknown>)[slot];
      const hasItsOwn = isBuiltByNest && had !== undefined;
      if (!value || had === value || hasItsOwn) continue;
      if (!giveService(instance, slot, value)) mistakes.push(frozen(instance, isBuiltByNest));
      else if (noteEarlierService(instance, slot, had)) logger.warn(shared(instance));
    }
    return mistakes;
  }

  /** Wires what a factory is going to make: for each request, or for each object that asks for it. */
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

  /** What the app has for the service, a fake of a test included. */
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
    `The ${instance.constructor.name} given to Nest belongs to another app of this process, too, which is still open. Until one of the two closes, ` +
    'its @WithLock methods lock in the store of the app that has started last, for both.';
  return mistake(what, ['Give each app an object of its own.', 'Close the other app first.']);
}

function frozen(instance: object, isBuiltByNest: boolean): string {
  if (isBuiltByNest) {
    const what = `The constructor of ${instance.constructor.name} freezes the object, so it can't be given the LockService`;
    return mistake(`${what} that its @WithLock methods need.`, ["Don't freeze it, or do so in onModuleInit()."]);
  }
  const what = `The ${instance.constructor.name} given to Nest is frozen, so it can't be given the LockService that its @WithLock methods need.`;
  return mistake(what, ['Let Nest build it.', "Don't freeze it."]);
}
