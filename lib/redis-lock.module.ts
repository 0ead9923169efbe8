import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { ApplicationConfig } from '@nestjs/core';
import { LockOptionsError } from './errors/lock-options.error.js';
import { guardRequests } from './http/lock-request.guard.js';
import { LockExplorer } from './lock.explorer.js';
import { LockService } from './lock.service.js';
import { checkedModuleName, lockServiceToken } from './lock.tokens.js';
import { ASYNC_OPTIONS_TYPE, ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } from './redis-lock.module-definition.js';
import { resolveLockOptions, type RedisLockModuleOptions, type RedisLockOptions } from './redis-lock.options.js';
import { storeFor } from './redis/store-for.js';

const logger = new Logger('RedisLock');
const HTTP = Symbol('nest-redis-lock:http');

/**
 * Supplies `LockService` and makes `@WithLock` work, in the whole app by default.
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
    resolveLockOptions(options);
    return withLockService(super.forRoot(options), options.name);
  }

  /** Takes `useFactory`, `useClass` or `useExisting`; `name` and `isGlobal` stand beside it, not in what it returns. */
  static override forRootAsync(options: typeof ASYNC_OPTIONS_TYPE): DynamicModule {
    return withLockService(super.forRootAsync(options), options.name);
  }
}

function withLockService(definition: DynamicModule, givenName: unknown): DynamicModule {
  const name = checkedModuleName('name', givenName);
  const token = lockServiceToken(name);
  return {
    ...definition,
    providers: [
      ...(definition.providers ?? []),
      { provide: token, useFactory: (options?: RedisLockOptions) => lockService(name, options), inject: [MODULE_OPTIONS_TOKEN] },
      { provide: HTTP, useFactory: followRequests, inject: [MODULE_OPTIONS_TOKEN, ApplicationConfig] },
      LockExplorer,
    ],
    exports: [...(definition.exports ?? []), token],
  };
}

function followRequests(options: RedisLockOptions | undefined, app: ApplicationConfig): boolean {
  const http = options?.http ?? true;
  if (http) guardRequests(app);
  return http;
}

function lockService(name: string, options: RedisLockOptions | undefined): LockService {
  if (!options) throw new LockOptionsError(`The factory of forRootAsync() must return an object of options, not ${String(options)}. Return {} to have the defaults.`);
  const misplaced = ['name', 'isGlobal'].find((option) => Object.hasOwn(options, option));
  if (misplaced) throw new LockOptionsError(`"${misplaced}" can't come from the factory: Nest needs it before. Put it beside useFactory.`);
  const resolved = resolveLockOptions(options);
  const { store, terms, shutdownGraceMs } = resolved;
  return new LockService({
    name,
    terms,
    shutdownGraceMs,
    store: store ?? storeFor({ ...resolved, leaseMs: terms.leaseMs, log: outageLog }),
  });
}

const outageLog = {
  down: (server: string, cause: Error) => logger.warn(`Redis at ${server} can't be reached: ${cause.message || String(cause)}. Calls that need a lock fail until it is back.`),
  up: (server: string) => logger.log(`Redis at ${server} can be reached again.`),
  deaf: (server: string, cause: Error | undefined) =>
    logger.warn(
      `The subscription that tells this app of locks it is given is down (Redis at ${server}${cause ? `: ${cause.message || String(cause)}` : ''}). ` +
        'Until it is up, who waits asks about once a second. If it stays so, look whether the user may SUBSCRIBE (docs/redis.md).',
    ),
  hears: (server: string) => logger.log(`The subscription at Redis at ${server} is up again.`),
};
