import type { LockStore } from '../store/lock-store.js';
import { isCluster } from './connection/redis-client.js';
import { RedisLockStore } from './locks/redis-lock.store.js';
import { connectToRedis } from './locks/transport.js';
import type { OneRedisOptions, RedisStoreOptions } from './redis-store.js';

/**
 * Makes the store, and loads the code of clusters, quorums and durability only for an app that has one: to read it takes
 * a tenth of the time of an import.
 *
 * @throws LockOptionsError as `redisStore` does
 */
export async function loadRedisStore(options: RedisStoreOptions): Promise<LockStore> {
  if (isPlain(options)) return new RedisLockStore(connectToRedis(options));
  const { redisStore } = await import('./redis-store.js');
  return redisStore(options);
}

function isPlain(options: RedisStoreOptions): options is OneRedisOptions {
  const { connection, durability } = options;
  return !durability && !Array.isArray(connection) && !isCluster(connection);
}
