import type { ApplicationConfig, ModulesContainer } from '@nestjs/core';
import {
  EXCEPTION_FILTERS_METADATA,
  GUARDS_METADATA,
  INTERCEPTORS_METADATA,
  PIPES_METADATA,
  ROUTE_ARGS_METADATA,
} from '@nestjs/common/constants.js';
import { classPrototypeOf, prototypesOf } from '../decorators/method/prototypes.js';
import { isObject, objectsIn } from './objects-in.js';

/** What Nest keeps of a module, and of a provider. */
export type NestModule = ValueOf<ModulesContainer>;
export type Provider = ValueOf<NestModule['providers']>;
type ValueOf<M> = M extends Map<unknown, infer Value> ? Value : never;

/** An object that Nest knows, or only its class, where Nest builds one for each request. */
export interface Discovered {
  readonly instance: object | undefined;
  readonly prototype: object;
  readonly isBuiltByNest: boolean;
}

const ENHANCERS = [GUARDS_METADATA, INTERCEPTORS_METADATA, PIPES_METADATA, EXCEPTION_FILTERS_METADATA];

/** Returns all providers, controllers, enhancers and middlewares of modules. */
export function* providersOf(modules: Iterable<NestModule>): Iterable<Provider> {
  for (const module of modules)
    yield* [
      ...module.providers.values(),
      ...module.controllers.values(),
      ...module.injectables.values(),
      ...module.middlewares.values(),
    ];
}

/** Discovers all objects and classes of modules. */
export function* discoverIn(modules: Iterable<NestModule>): Iterable<Discovered> {
  for (const provider of providersOf(modules)) {
    const type: unknown = provider.isNotMetatype ? undefined : provider.metatype;
    if (typeof type === 'function' && type.prototype) {
      yield {
        instance: provider.isDependencyTreeStatic() && isObject(provider.instance) ? provider.instance : undefined,
        prototype: type.prototype as object,
        isBuiltByNest: true,
      };
      yield* existing(enhancersOf(type, type.prototype as object));
    } else {
      yield* existing(instancesOf(provider));
    }
  }
}

/** Discovers the objects that were created with `new` for the whole app. */
export function discoverGlobal(app: ApplicationConfig): Iterable<Discovered> {
  return existing(
    [app.getGlobalGuards(), app.getGlobalInterceptors(), app.getGlobalPipes(), app.getGlobalFilters()].flat(),
  );
}

/**
 * Tells whether a factory makes objects after the app has started, too: for each request, or for each object that asks
 * for one.
 */
export function isFactoryOfMany(provider: Provider): boolean {
  return provider.isFactory && !provider.isAlias && (provider.isTransient || !provider.isDependencyTreeStatic());
}

function instancesOf(provider: Provider): readonly unknown[] {
  if (!provider.isDependencyTreeStatic()) return [];
  return [provider.instance, ...provider.getStaticTransientInstances().map((made) => made?.instance)];
}

/**
 * Finds what was created with `new` for `@UseGuards` and the like, or for a parameter: `@Param('id', new MyPipe())`.
 */
function enhancersOf(type: object, prototype: object): readonly unknown[] {
  const methods = methodsOf(prototype);
  const bound = [type, ...methods.values()].flatMap((target) =>
    ENHANCERS.flatMap((kind) => Reflect.getMetadata(kind, target) as unknown),
  );
  const parameters = [...methods.keys()].flatMap((name) =>
    Object.values(
      (Reflect.getMetadata(ROUTE_ARGS_METADATA, type, name) ?? {}) as Record<string, { pipes?: unknown[] }>,
    ),
  );
  return [...bound, ...parameters.flatMap(({ pipes }) => pipes ?? [])];
}

/** Returns the methods of a class, inherited ones included. */
function methodsOf(prototype: object): ReadonlyMap<string, object> {
  const methods = new Map<string, object>();
  for (const owner of prototypesOf(prototype)) {
    if (owner === Object.prototype) break;
    const properties = Object.getOwnPropertyDescriptors(owner) as Record<string, PropertyDescriptor>;
    for (const [name, { value }] of Object.entries(properties)) {
      if (typeof value === 'function' && !methods.has(name)) methods.set(name, value as object);
    }
  }
  return methods;
}

function* existing(values: Iterable<unknown>): Iterable<Discovered> {
  for (const value of values) {
    for (const instance of objectsIn(value)) {
      const prototype = classPrototypeOf(instance);
      if (prototype) yield { instance, prototype, isBuiltByNest: false };
    }
  }
}
