import { type DynamicModule, Module } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { LockExplorer } from '../boot/lock.explorer.js';
import { bindGrpcGuard } from '../http/grpc-call.guard.js';
import { bindExceptionFilter } from '../http/lock-exception.filter.js';
import { bindRequestGuard } from '../http/lock-request.guard.js';
import { checkedAsyncOptions, checkedFactories } from './redis-lock.async-options.js';
import { ASYNC_OPTIONS_TYPE, ConfigurableModuleClass } from './redis-lock.module-definition.js';
import type { RedisLockModuleOptions, RedisLockOptions } from './redis-lock.options.js';
import {
  DEFAULT_MODULE_OPTIONS,
  plainModuleOptions,
  resolveModuleOptions,
  type ResolvedModuleOptions,
} from './redis-lock.resolved-options.js';
import { createLockService, resolveFactoryOptions } from './redis-lock.service-factory.js';
import { lockServiceToken, MODULE_OPTIONS_TOKEN, moduleNameIn } from '../service/lock.tokens.js';

const HTTP = Symbol('nest-redis-lock:http');
const ERRORS = Symbol('nest-redis-lock:errors');
const CALLS = Symbol('nest-redis-lock:calls');

/**
 * Provides `LockService` and makes `@WithLock` work, in the whole app by default.
 *
 * @example
 * ```ts
 * @Module({ imports: [RedisLockModule.forRoot({ connection: 'redis://127.0.0.1:6379' })] })
 * export class AppModule {}
 * ```
 */
@Module({})
export class RedisLockModule extends ConfigurableModuleClass {
  /** @throws LockOptionsError for an unknown option or a bad value */
  static override forRoot(options: RedisLockModuleOptions = {}): DynamicModule {
    const given = plainModuleOptions(options);
    const resolved = resolveModuleOptions(given);
    return withLockService(super.forRoot(given), moduleNameIn(given, 'name'), () => resolved);
  }

  /**
   * Takes `useFactory`, `useClass` or `useExisting`. Put `name` and `isGlobal` beside it, not into the options that it
   * returns.
   *
   * @throws LockOptionsError for anything else
   */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    const checked = checkedAsyncOptions(options);
    const definition = super.forRootAsync(checked);
    const providers = checkedFactories(definition.providers ?? [], checked);
    return withLockService({ ...definition, providers }, moduleNameIn(checked, 'name'), resolveFactoryOptions);
  }
}

function withLockService(
  definition: DynamicModule,
  name: string,
  resolve: (options: RedisLockOptions | undefined) => ResolvedModuleOptions,
): DynamicModule {
  const token = lockServiceToken(name);
  return {
    ...definition,
    providers: [
      ...(definition.providers ?? []),
      {
        provide: token,
        // Resolved here, so that a test that overrides the service needs no valid options.
        useFactory: (options?: RedisLockOptions) => createLockService(name, resolve(options)),
        inject: [MODULE_OPTIONS_TOKEN],
      },
      { provide: HTTP, useFactory: followRequests, inject: [MODULE_OPTIONS_TOKEN, ApplicationConfig] },
      {
        provide: ERRORS,
        useFactory: bindExceptionFilter,
        inject: [ApplicationConfig, HttpAdapterHost, ModulesContainer],
      },
      { provide: CALLS, useFactory: bindGrpcGuard, inject: [ModulesContainer] },
      LockExplorer,
    ],
    exports: [...(definition.exports ?? []), token],
  };
}

function followRequests(options: RedisLockOptions | undefined, app: ApplicationConfig): boolean {
  const http = options?.http ?? DEFAULT_MODULE_OPTIONS.http;
  bindRequestGuard(app, http);
  return http;
}
