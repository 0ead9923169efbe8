import { Inject, Injectable, type OnApplicationShutdown, type OnModuleInit, Optional } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { isInstanceOf, prototypesOf } from '../decorators/method/prototypes.js';
import { noteArrivals } from '../http/arrivals.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { mistakeList } from '../errors/mistakes.js';
import { logger } from '../log/logger.js';
import { LockService } from '../service/lock.service.js';
import { mistakesOf } from './boot-checks.js';
import {
  discoverGlobal,
  discoverIn,
  isFactoryOfMany,
  providersOf,
  type Discovered,
  type NestModule,
} from './discovery.js';
import { InstanceWiring } from './instance-wiring.js';
import { clashesOf } from './key-clashes.js';
import { onLazyModules } from './lazy-modules.js';
import { infoOf, reachedMethods, shownLock } from './method-list.js';
import { endServicesAtShutdown, sameNames } from './module-services.js';
import { perRequestOptions } from './request-scoped-options.js';
import { unknownToNest } from './unknown-classes.js';

/** The classes that any app of this process knows: an app need not use all classes of its process. */
const knownToAnyApp = new WeakSet<object>();

/** The explorer of each app. */
const explorers = new WeakMap<ModulesContainer, LockExplorer>();

/**
 * Looks through the app at boot. It wires objects that Nest did not construct itself (`useFactory`, `useValue`, guards
 * created with `new`), and refuses to start an app in which a lock would not hold. It wraps no method: `@WithLock` did
 * that when the class was defined.
 */
@Injectable()
export class LockExplorer implements OnModuleInit, OnApplicationShutdown {
  readonly #modules: ModulesContainer;
  readonly #app: ApplicationConfig;
  readonly #http: HttpAdapterHost | undefined;
  readonly #wiring: InstanceWiring;
  readonly #explored = new Set<NestModule>();
  readonly #prototypes = new Set<object>();
  #forgetArrivals: (() => void) | undefined;

  constructor(
    modules: ModulesContainer,
    app: ApplicationConfig,
    @Optional() @Inject(HttpAdapterHost) http?: HttpAdapterHost,
  ) {
    this.#modules = modules;
    this.#app = app;
    this.#http = http;
    this.#wiring = new InstanceWiring(modules);
  }

  /** @throws LockOptionsError with all mistakes of the app */
  onModuleInit(): void {
    if (!this.#isFirst()) return;
    this.#explore(this.#modules.values(), discoverGlobal(this.#app));
    for (const prototype of this.#prototypes) for (const owner of prototypesOf(prototype)) knownToAnyApp.add(owner);
    const unknown = unknownToNest(knownToAnyApp);
    if (unknown.length > 0) logger.warn(mistakeList(unknown));
    onLazyModules(this.#modules, (loaded) => this.#explore(loaded));
    endServicesAtShutdown(this.#modules);
    this.#forgetArrivals = noteArrivals(this.#http?.httpAdapter);
  }

  onApplicationShutdown(): void {
    this.#forgetArrivals?.();
  }

  /** Looks through the modules that it has not seen yet. */
  #explore(modules: Iterable<NestModule>, others: Iterable<Discovered> = []): void {
    const fresh = [...modules].filter((module) => !this.#explored.has(module));
    const discovered = [...discoverIn(fresh), ...others];
    const prototypes = new Set(discovered.map(({ prototype }) => prototype));
    const objects = discovered.map(({ instance }) => instance).filter((instance) => instance !== undefined);
    const unwired = this.#wire(fresh, discovered);
    const added = [...prototypes].filter((prototype) => !this.#prototypes.has(prototype));
    const clashes = clashesOf(methodsOf(added), methodsOf(this.#prototypes));
    const mistakes = [
      ...sameNames(this.#modules),
      ...perRequestOptions(fresh),
      ...unwired,
      ...[...prototypes].flatMap(mistakesOf),
      ...clashes.mistakes,
      ...objects.flatMap((object) => this.#wiring.refusedCalls(object)),
    ];
    if (mistakes.length > 0) throw new LockOptionsError(mistakeList(mistakes));
    if (clashes.warnings.length > 0) logger.warn(mistakeList(clashes.warnings));
    for (const module of fresh) this.#explored.add(module);
    this.#list(added);
  }

  /**
   * Tells whether this explorer works for the app: of several modules, one explores for all. Does not look for itself
   * in the app, which may have something else in its place (`instrument.instanceDecorator`).
   */
  #isFirst(): boolean {
    const first = explorers.get(this.#modules) ?? this;
    explorers.set(this.#modules, first);
    return first === this;
  }

  #wire(modules: readonly NestModule[], discovered: readonly Discovered[]): readonly string[] {
    for (const provider of providersOf(modules)) if (isFactoryOfMany(provider)) this.#wiring.wireAll(provider);
    const mistakes = discovered.flatMap(({ instance, isBuiltByNest }) =>
      instance ? this.#wiring.wire(instance, isBuiltByNest) : [],
    );
    this.#wiring.warnOfShared();
    return mistakes;
  }

  /** Logs the methods of new classes, and gives each service the list of its methods. */
  #list(added: readonly object[]): void {
    for (const reached of reachedMethods(added)) logger.debug(shownLock(reached));
    for (const prototype of added) this.#prototypes.add(prototype);
    const all = reachedMethods(this.#prototypes);
    for (const module of new Set(all.map(({ method }) => method.module))) {
      const service = this.#wiring.serviceOf(module);
      const own = all.filter(({ method }) => method.module === module);
      if (isInstanceOf(service, LockService)) service.noteMethods(own.map(infoOf));
    }
  }
}

const methodsOf = (prototypes: Iterable<object>) => reachedMethods(prototypes).map(({ method }) => method);
