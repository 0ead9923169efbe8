import { Injectable, Logger, type OnModuleInit } from '@nestjs/common';
import { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import { type LockedMethod, lockedMethods } from './decorators/locked-methods.js';
import { LockOptionsError } from './errors/lock-options.error.js';
import { mistake, mistakeList } from './errors/mistakes.js';
import { isFactoryOfMany, type Known, knownTo, providersOf } from './lock.known.js';
import { isReached, mistakesOf, nameOf, outOfReach } from './lock.checks.js';
import { type GuardedMethod, LockService } from './lock.service.js';
import { DEFAULT_MODULE } from './lock.tokens.js';
import { LockWiring } from './lock.wiring.js';

const logger = new Logger('RedisLock');

/**
 * Looks through the app at boot. It wires objects that Nest did not construct itself (`useFactory`, `useValue`, guards made with `new`), and refuses to start
 * an app in which a lock would not hold. It wraps no method: `@WithLock` did that when the class was defined.
 */
@Injectable()
export class LockExplorer implements OnModuleInit {
  readonly #modules: ModulesContainer;
  readonly #app: ApplicationConfig;
  readonly #wiring: LockWiring;

  constructor(modules: ModulesContainer, app: ApplicationConfig) {
    this.#modules = modules;
    this.#app = app;
    this.#wiring = new LockWiring(modules);
  }

  /** @throws LockOptionsError with all mistakes there are */
  onModuleInit(): void {
    if (!this.#isFirst()) return;
    const known = [...knownTo(this.#modules, this.#app)];
    const prototypes = new Set(known.map(({ prototype }) => prototype));
    const mistakes = [...twins(known), ...this.#wire(known), ...[...prototypes].flatMap(mistakesOf)];
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
    for (const provider of providersOf(this.#modules)) if (isFactoryOfMany(provider)) this.#wiring.wireAll(provider);
    return known.flatMap(({ instance, isBuiltByNest }) => (instance && !isBuiltByNest ? this.#wiring.wire(instance) : []));
  }

  /** Tells the log and the services which methods are guarded. */
  #list(prototypes: ReadonlySet<object>): void {
    const guarded = [...prototypes].flatMap((prototype) => lockedMethods(prototype).filter((method) => isReached(prototype, method)).map((method) => ({ prototype, method })));
    for (const { prototype, method } of guarded) logger.debug(`${nameOf(prototype, method.name)} locks ${keyText(method)}`);
    for (const module of new Set(guarded.map(({ method }) => method.module))) {
      const service = this.#wiring.serviceOf(module);
      const own = guarded.filter(({ method }) => method.module === module);
      if (service instanceof LockService) service.noteMethods(own.map(({ prototype, method }) => guardedMethod(prototype, method)));
    }
  }
}

function twins(known: readonly Known[]): readonly string[] {
  const services = new Set(known.map(({ instance }) => instance).filter((instance) => instance instanceof LockService));
  const names = [...services].map(({ moduleName }) => moduleName);
  const remedies = ['Import forRoot() once, in the root module: it is global.', 'Give one of them a name: RedisLockModule.forRoot({ name: "billing" }).'];
  return names.filter((name, index) => names.indexOf(name) < index).map((name) => mistake(`Two RedisLockModules are named "${name}".`, remedies));
}

function withBases(prototypes: ReadonlySet<object>): ReadonlySet<object> {
  const all = new Set<object>();
  for (let prototype of prototypes as ReadonlySet<object | null>) {
    for (; prototype; prototype = Object.getPrototypeOf(prototype) as object | null) all.add(prototype);
  }
  return all;
}

function guardedMethod(prototype: object, { name, key, scope }: LockedMethod): GuardedMethod {
  const templates = typeof key === 'function' ? undefined : ([key].flat() as string[]);
  return Object.freeze({ className: prototype.constructor.name, method: String(name), templates, scope });
}

function keyText({ key, module }: LockedMethod): string {
  const text = typeof key === 'function' ? 'what its function says' : [key].flat().map((template) => JSON.stringify(template)).join(' and ');
  return module === DEFAULT_MODULE ? text : `${text} of the module "${module}"`;
}
