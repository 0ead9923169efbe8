import type { ModulesContainer } from '@nestjs/core';
import { lockedMethodsOf } from '../decorators/method/locked-methods.js';
import { classNameOf } from '../decorators/method/method-name.js';
import { classPrototypeOf } from '../decorators/method/prototypes.js';
import { giveService, refusedCalls } from '../decorators/instance/service-slot.js';
import { noteEarlierService } from '../decorators/call/service-of.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { mistake, mistakeList } from '../errors/mistakes.js';
import { logger } from '../log/logger.js';
import { mistakesOf } from './boot-checks.js';
import type { Provider } from './discovery.js';
import { objectsIn } from './objects-in.js';
import { sharedObjects } from './shared-objects.js';
import { lockServiceSlot, lockServiceToken } from '../service/lock.tokens.js';

type Factory = (...dependencies: unknown[]) => unknown;

/**
 * Gives objects that Nest did not construct itself the `LockService` of their `@WithLock` methods. Nest injects it into
 * the others.
 */
export class InstanceWiring {
  readonly #modules: ModulesContainer;
  /** The objects of another open app that have been wired since the last warning. */
  readonly #shared = new Set<object>();
  /** The objects that threw when they were wired. */
  readonly #closed = new WeakSet<object>();

  constructor(modules: ModulesContainer) {
    this.#modules = modules;
  }

  /** @returns what is wrong with the object */
  wire(instance: object, isBuiltByNest = false): readonly string[] {
    const modules = new Set(lockedMethodsOf(instance).map(({ module }) => module));
    try {
      return [...modules].flatMap((module) =>
        this.#give(instance, module, isBuiltByNest) ? [] : frozen(instance, isBuiltByNest),
      );
    } catch (error) {
      if (error instanceof LockOptionsError) throw error;
      this.#closed.add(instance);
      return [closed(instance)];
    }
  }

  /** Returns why calls of an object are refused. Looks at no object that threw when it was wired. */
  refusedCalls(instance: object): readonly string[] {
    return this.#closed.has(instance) ? [] : refusedCalls(instance);
  }

  /** Wires what a factory will make: for each request, or for each object that asks for it. */
  wireAll(provider: Provider): void {
    const make = provider.metatype as Factory;
    const checked = new WeakSet<object>();
    let hasWarned = false;
    provider.metatype = async (...dependencies: unknown[]) => {
      const made = await make(...dependencies);
      const locked = [...objectsIn(made)].filter((object) => lockedMethodsOf(object).length > 0);
      const prototypes = new Set(locked.map((object) => classPrototypeOf(object) ?? object));
      const mistakes = [
        ...locked.flatMap((object) => this.wire(object)),
        ...[...prototypes].flatMap((prototype) => (checked.has(prototype) ? [] : mistakesOf(prototype))),
        ...locked.flatMap((object) => this.refusedCalls(object)),
      ];
      if (mistakes.length > 0) throw new LockOptionsError(mistakeList(mistakes));
      for (const prototype of prototypes) checked.add(prototype);
      hasWarned = this.warnOfShared(hasWarned) || hasWarned;
      return made;
    };
  }

  /**
   * Warns once of all shared objects that have been wired since the last call.
   *
   * @param isSilent whether to forget them without a warning
   * @returns whether there were any
   */
  warnOfShared(isSilent = false): boolean {
    const [first, ...more] = this.#shared;
    this.#shared.clear();
    if (first && !isSilent) logger.warn(sharedObjects([first, ...more]));
    return first !== undefined;
  }

  /** Returns what the app uses as the service of a module, a test's fake included. */
  serviceOf(moduleName: string): unknown {
    for (const module of this.#modules.values()) {
      const provider = module.providers.get(lockServiceToken(moduleName));
      if (provider) return provider.instance;
    }
    return undefined;
  }

  /** @returns false where the object is frozen */
  #give(instance: object, module: string, isBuiltByNest: boolean): boolean {
    const value = this.serviceOf(module);
    const slot = lockServiceSlot(module);
    const earlier = (instance as Record<symbol, unknown>)[slot];
    const hasItsOwn = isBuiltByNest && earlier !== undefined;
    if (!value || earlier === value || hasItsOwn) return true;
    if (!giveService(instance, slot, value)) return false;
    if (noteEarlierService(instance, slot, earlier)) this.#shared.add(instance);
    return true;
  }
}

function closed(instance: object): string {
  const what =
    `The ${classNameOf(instance)} given to Nest throws where a property of it is read or set, ` +
    "so it can't be given the LockService that its @WithLock methods need.";
  return mistake(what, ['Let Nest build it.', 'Give Nest the object itself, in place of a Proxy of it.']);
}

function frozen(instance: object, isBuiltByNest: boolean): string {
  const type = classNameOf(instance);
  const consequence = "so it can't be given the LockService that its @WithLock methods need.";
  return isBuiltByNest
    ? mistake(`The constructor of ${type} freezes the object, ${consequence}`, [
        "Don't freeze it, or do so in onModuleInit().",
      ])
    : mistake(`The ${type} given to Nest is frozen, ${consequence}`, ['Let Nest build it.', "Don't freeze it."]);
}
