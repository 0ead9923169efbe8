import type { FactoryProvider, Provider } from '@nestjs/common';
import { plainOptions } from '../errors/plain-options.js';
import { booleanOption, wrongValue } from '../core/request/lock-options.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import { mistake } from '../errors/mistakes.js';
import { unknownOption } from '../errors/unknown-option.js';
import type { ASYNC_OPTIONS_TYPE } from './redis-lock.module-definition.js';
import type { RedisLockOptionsFactory } from './redis-lock.options.js';
import { isModuleOption } from './redis-lock.resolved-options.js';
import { MODULE_OPTIONS_TOKEN } from '../service/lock.tokens.js';

export type AsyncOptions = typeof ASYNC_OPTIONS_TYPE;

const CALL = 'RedisLockModule.forRootAsync()';
const SOURCES = ['useFactory', 'useClass', 'useExisting'] as const;
const KNOWN = [...SOURCES, 'inject', 'imports', 'provideInjectionTokensFrom', 'name', 'isGlobal'];

const REMEDIES = [
  'Return the options from that method of the class. "implements RedisLockOptionsFactory" lets the compiler check it.',
  'Give a function as useFactory, and its dependencies as inject.',
];

/**
 * Checks the argument of `forRootAsync`.
 *
 * @throws LockOptionsError naming what was given and what is allowed
 */
export function checkedAsyncOptions(given: unknown): AsyncOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given)) {
    throw new LockOptionsError(
      `${CALL} takes an object with useFactory, useClass or useExisting, not ${shown(given)}.`,
    );
  }
  const options: AsyncOptions = plainOptions(given, KNOWN);
  for (const name of Object.keys(options)) if (!KNOWN.includes(name)) throw misplaced(name);
  const sources = SOURCES.filter((name) => options[name] !== undefined);
  if (sources.length !== 1) {
    const came = sources.length === 0 ? 'none of them' : sources.join(' and ');
    throw new LockOptionsError(`${CALL} takes one of useFactory, useClass and useExisting, but was given ${came}.`);
  }
  const { useFactory, useClass, useExisting, inject, imports, isGlobal } = options;
  const isCallable = (value: unknown) => value === undefined || typeof value === 'function';
  if (!isCallable(useFactory)) throw wrongValue('useFactory', useFactory, 'a function that returns options');
  if (!isCallable(useClass)) throw wrongValue('useClass', useClass, 'a class with createRedisLockOptions()');
  if (useExisting === null) throw wrongValue('useExisting', useExisting, 'a provider with createRedisLockOptions()');
  if (inject !== undefined && !Array.isArray(inject))
    throw wrongValue('inject', inject, "an array of the factory's dependencies");
  if (imports !== undefined && !Array.isArray(imports)) throw wrongValue('imports', imports, 'an array of modules');
  if (isGlobal !== undefined) booleanOption('isGlobal', isGlobal);
  return options;
}

/**
 * Wraps Nest's providers for `useClass` and `useExisting`, so that what they build is checked to have the method. A
 * class can't be checked: the method may be a property that only its objects have.
 */
export function checkedFactories(providers: readonly Provider[], { useClass, useExisting }: AsyncOptions): Provider[] {
  const [how, from] = useClass ? ['useClass', useClass] : ['useExisting', useExisting];
  if (!from) return [...providers];
  const check = (maker: Partial<RedisLockOptionsFactory> | undefined) => {
    if (typeof maker?.createRedisLockOptions === 'function') return maker.createRedisLockOptions();
    const name = typeof from === 'function' ? from.name : shown(from);
    throw new LockOptionsError(
      mistake(
        `"${how}" of ${CALL} is ${name}, which gives ${shown(maker)} without a method createRedisLockOptions().`,
        REMEDIES,
      ),
    );
  };
  return providers.map((provider) =>
    (provider as FactoryProvider).provide === MODULE_OPTIONS_TOKEN
      ? { ...(provider as FactoryProvider), useFactory: check }
      : provider,
  );
}

function misplaced(name: string): LockOptionsError {
  if (!isModuleOption(name)) return unknownOption(name, KNOWN);
  return new LockOptionsError(
    `"${name}" does not belong in forRootAsync(), which would ignore it. Return it from the factory.`,
  );
}
