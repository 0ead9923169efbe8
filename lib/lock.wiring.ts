import type { ModulesContainer } from '@nestjs/core';
import { lockedMethods } from './decorators/locked-methods.js';
import { LockOptionsError } from './errors/lock-options.error.js';
import { mistake, mistakeList } from './errors/mistakes.js';
import { mistakesOf } from './lock.checks.js';
import type { Provider } from './lock.known.js';
import { lockServiceSlot, lockServiceToken } from './lock.tokens.js';

type Factory = (...dependencies: unknown[]) => unknown;

/** Gives the objects that Nest did not construct itself what it injects into the others: the `LockService` of their `@WithLock` methods. */
export class LockWiring {
  readonly #modules: ModulesContainer;

  constructor(modules: ModulesContainer) {
    this.#modules = modules;
  }

  /** @returns what is wrong with the object */
  wire(instance: object): readonly string[] {
    const mistakes: string[] = [];
    for (const { module } of lockedMethods(instance)) {
      const value = this.serviceOf(module);
      if (!value || (instance as Record<symbol, unknown>)[lockServiceSlot(module)] === value) continue;
      // Writable, as an object given by useValue can live on in the next app of a test.
      if (Object.isExtensible(instance)) Object.defineProperty(instance, lockServiceSlot(module), { value, writable: true, configurable: true });
      else mistakes.push(frozen(instance));
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
      const mistakes = [...this.wire(made), ...(checked.has(prototype) ? [] : mistakesOf(prototype))];
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

function frozen(instance: object): string {
  const what = `The ${instance.constructor.name} given to Nest is frozen, so it can't be given the LockService that its @WithLock methods need.`;
  return mistake(what, ['Let Nest build it.', "Don't freeze it."]);
}
