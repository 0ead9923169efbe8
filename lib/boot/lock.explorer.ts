import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { type LockedMethod, lockedMethods } from '../decorators/method/locked-methods.js';
import type { LockedMethodInfo } from '../service/locked-method-info.js';
import { shownMethod } from '../decorators/method/method-name.js';
import { refusedCalls } from '../decorators/instance/service-slot.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { mistake, mistakeList } from '../errors/mistakes.js';
import { isFactoryOfMany, type Known, discoverGlobal, discoverIn, type NestModule, providersOf } from './discovery.js';
import { perRequestOptions } from './request-scoped-options.js';
import { onLazyModules } from './lazy-modules.js';
import { onShutdown } from './shutdown-hook.js';
import { isReached, mistakesOf, unknownToNest } from './boot-checks.js';
import { clashesOf } from './key-clashes.js';
import { LockService } from '../service/lock.service.js';
import { DEFAULT_MODULE } from '../service/lock.tokens.js';
import { InstanceWiring } from './instance-wiring.js';

const logger = new Logger('RedisLock');

/** The classes that some app of this process knows: another one need not. */
const knownToSome = new WeakSet<object>();

/**
 * Looks through the app at boot. It wires objects that Nest did not construct itself (`useFactory`, `useValue`, guards
 * made with `new`), and refuses to start an app in which a lock would not hold. It wraps no method: `@WithLock` did
 * that when the class was defined.
 */
@Injectable()
export class LockExplorer implements OnModuleInit {
  readonly #modules: ModulesContainer;
  readonly #app: ApplicationConfig;
  readonly #wiring: InstanceWiring;
  readonly #explored = new Set<NestModule>();
  readonly #prototypes = new Set<object>();

  constructor(modules: ModulesContainer, app: ApplicationConfig) {
    this.#modules = modules;
    this.#app = app;
    this.#wiring = new InstanceWiring(modules);
  }

  /** @throws LockOptionsError with all mistakes there are */
  onModuleInit(): void {
    if (!this.#isFirst()) return;
    this.#explore(this.#modules.values(), discoverGlobal(this.#app));
    for (const prototype of withBases(this.#prototypes)) knownToSome.add(prototype);
    const strangers = unknownToNest(knownToSome);
    if (strangers.length > 0) logger.warn(mistakeList(strangers));
    onLazyModules(this.#modules, (loaded) => this.#explore(loaded));
    this.#endServices();
  }

  /** Nest calls the hooks of those that are there now; a service that comes with a lazy module is ended from here. */
  #endServices(): void {
    const atStart = servicesIn(this.#modules);
    const late = () => [...servicesIn(this.#modules)].filter((service) => !atStart.has(service));
    const begin = (): void => {
      for (const service of servicesIn(this.#modules)) service.onModuleDestroy();
    };
    onShutdown(this.#modules, begin, () => Promise.all(late().map((service) => service.onApplicationShutdown())));
  }

  /** Looks through modules that it has not seen yet. */
  #explore(modules: Iterable<NestModule>, others: Iterable<Known> = []): void {
    const fresh = [...modules].filter((module) => !this.#explored.has(module));
    const known = [...discoverIn(fresh), ...others];
    const prototypes = new Set(known.map(({ prototype }) => prototype));
    const objects = known.flatMap(({ instance }) => instance ?? []);
    const wired = this.#wire(fresh, known);
    const added = [...prototypes].filter((prototype) => !this.#prototypes.has(prototype));
    const clashes = clashesOf(methodsOf(added), methodsOf(this.#prototypes));
    const mistakes = [
      ...twins(this.#modules),
      ...perRequestOptions(fresh),
      ...wired,
      ...[...prototypes].flatMap(mistakesOf),
      ...clashes.mistakes,
      ...objects.flatMap(refusedCalls),
    ];
    if (mistakes.length > 0) throw new LockOptionsError(mistakeList(mistakes));
    if (clashes.warnings.length > 0) logger.warn(mistakeList(clashes.warnings));
    for (const module of fresh) this.#explored.add(module);
    this.#list(added);
  }

  /** Of several modules, one looks for all. */
  #isFirst(): boolean {
    for (const module of this.#modules.values()) {
      const instance: unknown = module.providers.get(LockExplorer)?.instance;
      if (instance) return instance === this;
    }
    return true;
  }

  #wire(modules: readonly NestModule[], known: readonly Known[]): readonly string[] {
    for (const provider of providersOf(modules)) if (isFactoryOfMany(provider)) this.#wiring.wireAll(provider);
    return known.flatMap(({ instance, isBuiltByNest }) => (instance ? this.#wiring.wire(instance, isBuiltByNest) : []));
  }

  /** Tells the log and the services which methods are guarded. */
  #list(fresh: readonly object[]): void {
    for (const { prototype, method } of guardedBy(fresh))
      logger.debug(`${shownMethod(prototype, method.name)} locks ${keyText(method)}`);
    for (const prototype of fresh) this.#prototypes.add(prototype);
    const guarded = guardedBy(this.#prototypes);
    for (const module of new Set(guarded.map(({ method }) => method.module))) {
      const service = this.#wiring.serviceOf(module);
      const own = guarded.filter(({ method }) => method.module === module);
      if (service instanceof LockService)
        service.noteMethods(own.map(({ prototype, method }) => guardedMethod(prototype, method)));
    }
  }
}

interface Guarded {
  readonly prototype: object;
  readonly method: LockedMethod;
}

function guardedBy(prototypes: Iterable<object>): readonly Guarded[] {
  const reached = (prototype: object) => lockedMethods(prototype).filter((method) => isReached(prototype, method));
  return [...prototypes].flatMap((prototype) => reached(prototype).map((method) => ({ prototype, method })));
}

function methodsOf(prototypes: Iterable<object>): readonly LockedMethod[] {
  return guardedBy(prototypes).map(({ method }) => method);
}

function twins(modules: ModulesContainer): readonly string[] {
  const names = [...servicesIn(modules)].map(({ moduleName }) => moduleName);
  const remedies = [
    'Import forRoot() once, in the root module: it is global.',
    'Give one of them a name: RedisLockModule.forRoot({ name: "billing" }).',
  ];
  return names
    .filter((name, index) => names.indexOf(name) < index)
    .map((name) => mistake(`Two RedisLockModules are named "${name}".`, remedies));
}

function servicesIn(modules: ModulesContainer): ReadonlySet<LockService> {
  return new Set(
    [...providersOf(modules.values())]
      .map(({ instance }): unknown => instance)
      .filter((instance) => instance instanceof LockService),
  );
}

function withBases(prototypes: ReadonlySet<object>): ReadonlySet<object> {
  const all = new Set<object>();
  for (let prototype of prototypes as ReadonlySet<object | null>) {
    for (; prototype; prototype = Object.getPrototypeOf(prototype) as object | null) all.add(prototype);
  }
  return all;
}

function guardedMethod(prototype: object, { name, key, scope }: LockedMethod): LockedMethodInfo {
  const templates = typeof key === 'function' ? undefined : ([key].flat() as string[]);
  return Object.freeze({ className: prototype.constructor.name, method: String(name), templates, scope });
}

function keyText({ key, module }: LockedMethod): string {
  const text =
    typeof key === 'function'
      ? 'what its function says'
      : [key]
          .flat()
          .map((template) => JSON.stringify(template))
          .join(' and ');
  return module === DEFAULT_MODULE ? text : `${text} of the module "${module}"`;
}
