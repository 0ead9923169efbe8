import type { LockStore } from '../store/lock-store.js';
import type { RedisConnectionOption, RedisConnectionsOption } from './connection/connection-option.js';
import { isCluster } from './connection/redis-client.js';
import type { DurabilityTerms } from './durability/replica-acknowledgements.js';
import { RedisLockStore } from './locks/redis-lock.store.js';
import { connectToRedis, type TransportOptions } from './locks/transport.js';

export interface RedisStoreOptions extends Omit<TransportOptions, 'connection' | 'isNode' | 'isDurable'> {
  readonly connection: RedisConnectionsOption;
  readonly durability: DurabilityTerms | undefined;
  /** The lease of callers that don't name one, in ms. */
  readonly leaseMs: number;
}

export type OneRedisOptions = RedisStoreOptions & { readonly connection: RedisConnectionOption };

/** Makes the store on one Redis without durability. Undefined when the options ask for another store. */
export function oneRedisStore(options: RedisStoreOptions): LockStore | undefined {
  return isOneRedis(options) && !options.durability ? new RedisLockStore(connectToRedis(options)) : undefined;
}

function isOneRedis(options: RedisStoreOptions): options is OneRedisOptions {
  return !Array.isArray(options.connection) && !isCluster(options.connection);
}
