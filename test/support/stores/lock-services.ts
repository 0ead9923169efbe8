import type { LockStore, RedisLockModuleOptions } from 'nest-redis-lock';
import { LockService } from '../../../lib/service/lock.service.js';
import type { RequestPort } from '../../../lib/service/request-port.js';
import { SILENT, type OutageLog } from '../../../lib/redis/connection/outage-log.js';
import { resolveModuleOptions } from '../../../lib/module/redis-lock.resolved-options.js';
import { RedisLockStore } from '../../../lib/redis/locks/redis-lock.store.js';
import { connectToRedis } from '../../../lib/redis/locks/transport.js';
import { redisStore as storeOn } from '../../../lib/redis/redis-store.js';
import { QuorumLockStore } from '../../../lib/store/quorum/quorum-lock.store.js';

/** A store on Redis, as the module makes it. */
export function redisStore(options: RedisLockModuleOptions, log: Partial<OutageLog> = {}): LockStore {
  const { callDefaults, ...resolved } = resolveModuleOptions(options);
  return storeOn({ ...resolved, leaseMs: callDefaults.leaseMs, log: { ...SILENT, ...log } });
}

/**
 * A quorum that trusts also nodes that were started a moment ago: for tests that begin at once, and let nodes come back
 * empty.
 */
export function trustingQuorum(
  connections: readonly string[],
  commandTimeoutMs = 1000,
  log: Partial<OutageLog> = {},
): LockStore {
  const node = { keyPrefix: 'lock:', commandTimeoutMs, isNode: true, log: { ...SILENT, ...log } };
  return new QuorumLockStore(
    connections.map((connection) => new RedisLockStore(connectToRedis({ ...node, connection }))),
  );
}

/** A `LockService` as the module makes it, without Nest. Stop it with `close()`. */
export function lockService(
  store: LockStore,
  options: RedisLockModuleOptions = {},
  requests?: RequestPort,
): LockService & { close(): Promise<void> } {
  const { callDefaults, shutdownGraceMs } = resolveModuleOptions(options);
  const service = new LockService({ name: 'default', store, callDefaults, shutdownGraceMs, requests });
  return Object.assign(service, { close: () => service.onApplicationShutdown() });
}

export type ClosableLockService = ReturnType<typeof lockService>;
