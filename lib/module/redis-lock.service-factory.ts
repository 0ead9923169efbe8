import { LockOptionsError } from '../errors/lock-options.error.js';
import { logger } from '../log/logger.js';
import { httpRequests } from '../http/http-requests.js';
import { LockReporter } from '../service/lock-reporter.js';
import { OutageReporter } from '../service/outage-reporter.js';
import { redisOutageLog } from './redis-lock.outage-log.js';
import type { RedisLockOptions } from './redis-lock.options.js';
import { plainModuleOptions, resolveModuleOptions, type ResolvedModuleOptions } from './redis-lock.resolved-options.js';
import { describeConnection } from '../redis/connection/describe-connection.js';
import { loadRedisStore } from '../redis/load-redis-store.js';
import { LockService } from '../service/lock.service.js';
import { DEFAULT_MODULE } from '../service/lock.tokens.js';

/** Makes the `LockService` of a module, and logs where its locks live. */
export async function createLockService(name: string, options: ResolvedModuleOptions): Promise<LockService> {
  const { callDefaults, shutdownGraceMs, exceptionFactory } = options;
  const outage = new OutageReporter(logger);
  const nodes = Array.isArray(options.connection) ? options.connection.length : 1;
  const log = redisOutageLog(logger, outage, nodes);
  const store = options.store ?? (await loadRedisStore({ ...options, leaseMs: callDefaults.leaseMs, log }));
  const service = new LockService({
    name,
    callDefaults,
    shutdownGraceMs,
    outage,
    reports: new LockReporter(logger),
    requests: httpRequests(exceptionFactory),
    store,
  });
  logger.log(`${name === DEFAULT_MODULE ? 'Locks live' : `Locks of "${name}" live`} ${placeOf(options)}.`);
  return service;
}

/**
 * Resolves what the factory of `forRootAsync` has returned.
 *
 * @throws LockOptionsError where it is nothing, or has an option that Nest needs earlier
 */
export function resolveFactoryOptions(options: RedisLockOptions | null | undefined): ResolvedModuleOptions {
  if (options === undefined || options === null)
    throw new LockOptionsError(
      `The factory of forRootAsync() must return an object of options, not ${String(options)}. ` +
        'Return {} for the defaults.',
    );
  const misplaced = ['name', 'isGlobal'].find((option) => option in plainModuleOptions(options));
  if (misplaced)
    throw new LockOptionsError(
      `"${misplaced}" can't come from the factory, because Nest needs it earlier. Put it beside useFactory.`,
    );
  return resolveModuleOptions(options);
}

/** Says where locks live, for the log of the boot. */
function placeOf({ store, connection, keyPrefix, durability }: ResolvedModuleOptions): string {
  if (store) return `in the app's own store (${store.constructor?.name ?? 'an object'})`;
  const replicas = durability
    ? `, durability of ${durability.replicas} replica(s)${durability.aof ? ' on disk' : ''}`
    : '';
  return `in ${describeConnection(connection)}, under ${JSON.stringify(keyPrefix)}${replicas}`;
}
