import { type DynamicModule, Logger, Module } from '@nestjs/common';
import { ApplicationConfig, HttpAdapterHost, ModulesContainer } from '@nestjs/core';
import { LockOptionsError } from './errors/lock-options.error.js';
import { bindExceptionFilter } from './http/lock-exception.filter.js';
import { bindRequestGuard } from './http/lock-request.guard.js';
import { LockExplorer } from './boot/lock.explorer.js';
import { shownDuration, OutageReporter } from './outage/outage-reporter.js';
import { LockService } from './service/lock.service.js';
import { lockServiceToken, MODULE_OPTIONS_TOKEN, moduleNameIn } from './service/lock.tokens.js';
import { checkedAsyncOptions, checkedMakers } from './redis-lock.async-options.js';
import { ASYNC_OPTIONS_TYPE, ConfigurableModuleClass } from './redis-lock.module-definition.js';
import {
  moduleOptions,
  resolveModuleOptions,
  type RedisLockModuleOptions,
  type RedisLockOptions,
  type ResolvedModuleOptions,
} from './redis-lock.options.js';
import { describeConnection } from './redis/connection/describe-connection.js';
import type { OutageLog } from './redis/connection/redis-connection.js';
import { redisStore } from './redis/redis-store.js';
import { diagnosis } from './redis/connection/redis-diagnosis.js';

const logger = new Logger('RedisLock');
const HTTP = Symbol('nest-redis-lock:http');
const ERRORS = Symbol('nest-redis-lock:errors');

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
    resolveModuleOptions(options);
    return withLockService(super.forRoot(moduleOptions(options)), moduleNameIn(moduleOptions(options), 'name'));
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
    return withLockService(
      { ...definition, providers: checkedMakers(definition.providers ?? [], checked) },
      moduleNameIn(checked, 'name'),
    );
  }
}

function withLockService(definition: DynamicModule, name: string): DynamicModule {
  const token = lockServiceToken(name);
  return {
    ...definition,
    providers: [
      ...(definition.providers ?? []),
      {
        provide: token,
        useFactory: (options?: RedisLockOptions) => lockService(name, options),
        inject: [MODULE_OPTIONS_TOKEN],
      },
      { provide: HTTP, useFactory: followRequests, inject: [MODULE_OPTIONS_TOKEN, ApplicationConfig] },
      {
        provide: ERRORS,
        useFactory: bindExceptionFilter,
        inject: [ApplicationConfig, HttpAdapterHost, ModulesContainer],
      },
      LockExplorer,
    ],
    exports: [...(definition.exports ?? []), token],
  };
}

function followRequests(options: RedisLockOptions | undefined, app: ApplicationConfig): boolean {
  const http = options?.http ?? true;
  if (http) bindRequestGuard(app);
  return http;
}

function lockService(name: string, options: RedisLockOptions | undefined): LockService {
  if (options === undefined || options === null)
    throw new LockOptionsError(
      `The factory of forRootAsync() must return an object of options, not ${String(options)}. Return {} to have the defaults.`,
    );
  const misplaced = ['name', 'isGlobal'].find((option) => option in moduleOptions(options));
  if (misplaced)
    throw new LockOptionsError(
      `"${misplaced}" can't come from the factory: Nest needs it before. Put it beside useFactory.`,
    );
  const resolved = resolveModuleOptions(options);
  const { store, terms, shutdownGraceMs, exceptionFactory } = resolved;
  const nodes = Array.isArray(resolved.connection) ? resolved.connection.length : 1;
  const outage = new OutageReporter(logger);
  const service = new LockService({
    name,
    terms,
    shutdownGraceMs,
    outage,
    exceptionFactory,
    store: store ?? redisStore({ ...resolved, leaseMs: terms.leaseMs, log: outageLog(nodes, outage) }),
  });
  logger.log(`${name === 'default' ? 'Locks live' : `Locks of "${name}" live`} ${whereabouts(resolved)}.`);
  return service;
}

/** Logs where locks live, in one line. */
function whereabouts({ store, connection, keyPrefix, durability }: ResolvedModuleOptions): string {
  if (store) return `in the app's own store (${store.constructor?.name ?? 'an object'})`;
  const replicas = durability
    ? `, durability of ${durability.replicas} replica(s)${durability.aof ? ' on disk' : ''}`
    : '';
  return `in ${describeConnection(connection)}, under ${JSON.stringify(keyPrefix)}${replicas}`;
}

/** Logs the outages of each Redis: of a single one together with the calls that fail, or of each node of a quorum. */
function outageLog(nodes: number, outage: OutageReporter): OutageLog {
  const { servers } = outage;
  const isQuorum = nodes > 1;
  const consequence = isQuorum
    ? `Locks go on while ${(nodes + 1) / 2} of the ${nodes} nodes work.`
    : 'Calls that need a lock fail until it is back.';
  const meanwhile = isQuorum
    ? 'While no node has one, nobody hears that others wait, or that a lock was taken by force.'
    : 'Until it is up, who waits asks about once a second.';
  return {
    down: (server, cause) => {
      servers.down(server);
      const line = `Redis at ${server} can't be reached: ${diagnosis(cause)} ${consequence}`;
      if (isQuorum) logger.warn(line);
      else outage.begin(line, server);
    },
    up: (server) => {
      const line = `Redis at ${server} can be reached again`;
      const lastedMs = servers.up(server);
      if (isQuorum) logger.log(`${line}, after ${shownDuration(lastedMs)}.`);
      else outage.end(line, server);
    },
    unsubscribed: (server, cause) =>
      servers.unsubscribed(
        server,
        `The subscription at Redis at ${server}, which tells this app of its locks, is down${cause ? `: ${diagnosis(cause)}` : '.'} ${meanwhile}`,
      ),
    subscribed: (server) => servers.subscribed(server, `The subscription at Redis at ${server} is up again.`),
    unfit: (server, problem) => logger.warn(`Redis at ${server} should not keep locks: ${problem}`),
  };
}
