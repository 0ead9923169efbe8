import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { type LockedMethod, lockedMethods } from './decorators/locked-methods.js';
import { LockOptionsError } from './errors/lock-options.error.js';
import { mistake, mistakeList } from './errors/mistakes.js';
import { mistakesOf, nameOf, outOfReach, ownerOf } from './lock.checks.js';
import { type GuardedMethod, LockService } from './lock.service.js';
import { DEFAULT_MODULE, lockServiceSlot, lockServiceToken } from './lock.tokens.js';

const logger = new Logger('RedisLock');

/** An object that Nest knows, or only its class, where it builds one for each request. */
interface Known {
  readonly instance: object | undefined;
  readonly prototype: object;
  readonly isBuiltByNest: boolean;
}

/**
 * Looks through the app at boot. It wires objects that Nest did not construct itself (`useFactory`, `useValue`), and refuses to start
 * an app in which a lock would not hold. It wraps nothing: `@WithLock` did that when the class was defined.
 */
@Injectable()
export class LockExplorer implements OnModuleInit {
  readonly #modules: ModulesContainer;
  readonly #app: ApplicationConfig;

  constructor(modules: ModulesContainer, app: ApplicationConfig) {
    this.#modules = modules;
    this.#app = app;
  }

  /** @throws LockOptionsError with all mistakes there are */
  onModuleInit(): void {
    if (!this.#isFirst()) return;
    const known = [...this.#known()];
    const prototypes = new Set(known.map(({ prototype }) => prototype));
    const mistakes = [...this.#twins(known), ...this.#wire(known), ...[...prototypes].flatMap(mistakesOf)];
    if (mistakes.length > 0) throw new LockOptionsError(mistakeList(mistakes));
    this.#list(prototypes);
    const strangers = outOfReach(withBases(prototypes));
    if (strangers.length > 0) logger.warn(mistakeList(strangers));
  }

  /** Of several modules, one looks for all. */
  #isFirst(): boolean {
    for (const module of this.#modules.values()) {
      const instance: unknown = module.providers.get(LockExplorer)?.instance;
      if (instance) return instance === this;
    }
    return true;
  }

  #wire(known: readonly Known[]): readonly string[] {
    const mistakes: string[] = [];
    for (const { instance, isBuiltByNest } of known) {
      if (!instance || isBuiltByNest) continue;
      for (const { module } of lockedMethods(instance)) {
        const value = this.#serviceOf(module);
        if (!value) continue;
        // Writable, as an object given by useValue can live on in the next app of a test.
        if (Object.isExtensible(instance)) Object.defineProperty(instance, lockServiceSlot(module), { value, writable: true, configurable: true });
        else mistakes.push(frozen(instance));
      }
    }
    return mistakes;
  }

  /** What the app has for the service, a fake of a test included. */
  #serviceOf(moduleName: string): unknown {
    for (const module of this.#modules.values()) {
      const provider = module.providers.get(lockServiceToken(moduleName));
      if (provider) return provider.instance;
    }
    return undefined;
  }

  #twins(known: readonly Known[]): readonly string[] {
    const services = new Set(known.map(({ instance }) => instance).filter((instance) => instance instanceof LockService));
    const names = [...services].map(({ moduleName }) => moduleName);
    const remedies = ['Import forRoot() once, in the root module: it is global.', 'Give one of them a name: RedisLockModule.forRoot({ name: "billing" }).'];
    return names.filter((name, index) => names.indexOf(name) < index).map((name) => mistake(`Two RedisLockModules are named "${name}".`, remedies));
  }

  /** Tells the log and the services which methods are guarded. */
  #list(prototypes: ReadonlySet<object>): void {
    const guarded = [...prototypes].flatMap((prototype) => lockedMethods(prototype).filter(({ owner, name }) => isReached(prototype, owner, name)).map((method) => ({ prototype, method })));
    for (const { prototype, method } of guarded) logger.debug(`${nameOf(prototype, method.name)} locks ${keyText(method)}`);
    for (const module of new Set(guarded.map(({ method }) => method.module))) {
      const service = this.#serviceOf(module);
      const own = guarded.filter(({ method }) => method.module === module);
      if (service instanceof LockService) service.noteMethods(own.map(({ prototype, method }) => guardedMethod(prototype, method)));
    }
  }

  *#known(): Iterable<Known> {
    for (const module of this.#modules.values()) {
      for (const wrapper of [...module.providers.values(), ...module.controllers.values(), ...module.injectables.values()]) {
        const instance: unknown = wrapper.isDependencyTreeStatic() ? wrapper.instance : undefined;
        const type: unknown = wrapper.isNotMetatype ? undefined : wrapper.metatype;
        if (typeof type === 'function' && type.prototype) yield { instance: asObject(instance), prototype: type.prototype as object, isBuiltByNest: true };
        else if (asObject(instance)) yield { instance: asObject(instance), prototype: Object.getPrototypeOf(instance) as object, isBuiltByNest: false };
      }
    }
    const enhancers = [this.#app.getGlobalGuards(), this.#app.getGlobalInterceptors(), this.#app.getGlobalPipes(), this.#app.getGlobalFilters()].flat();
    for (const instance of enhancers) yield { instance, prototype: Object.getPrototypeOf(instance) as object, isBuiltByNest: false };
  }
}

const asObject = (value: unknown): object | undefined => (typeof value === 'object' && value !== null && Object.getPrototypeOf(value) ? value : undefined);

function frozen(instance: object): string {
  const what = `The ${instance.constructor.name} given to Nest is frozen, so it can't be given the LockService that its @WithLock methods need.`;
  return mistake(what, ['Let Nest build it.', "Don't freeze it."]);
}

function withBases(prototypes: ReadonlySet<object>): ReadonlySet<object> {
  const all = new Set<object>();
  for (let prototype of prototypes as ReadonlySet<object | null>) {
    for (; prototype; prototype = Object.getPrototypeOf(prototype) as object | null) all.add(prototype);
  }
  return all;
}

/** Whether a call comes to the method of that owner: itself, or by `super`. */
function isReached(prototype: object, owner: object, name: string | symbol): boolean {
  const first = ownerOf(prototype, name);
  return first === owner || !lockedMethods(prototype).some((method) => method.name === name && method.owner === first);
}

function guardedMethod(prototype: object, { name, key, scope }: LockedMethod): GuardedMethod {
  const templates = typeof key === 'function' ? undefined : ([key].flat() as string[]);
  return Object.freeze({ className: prototype.constructor.name, method: String(name), templates, scope });
}

function keyText({ key, module }: LockedMethod): string {
  const text = typeof key === 'function' ? 'what its function says' : [key].flat().map((template) => JSON.stringify(template)).join(' and ');
  return module === DEFAULT_MODULE ? text : `${text} of the module "${module}"`;
}
