import { LockOptionsError } from '../errors/lock-options.error.js';
import type { LockStore } from '../store/lock-store.js';
import { ClusterLockStore } from './cluster/cluster-lock.store.js';
import { DurableLockStore, type DurabilityTerms } from './durable-lock.store.js';
import type { ReachOptions } from './reach.js';
import { isCluster } from './redis-client.js';
import { RedisLockStore } from './redis-lock.store.js';

interface StoreTerms extends ReachOptions {
  readonly durability: DurabilityTerms | undefined;
  /** The lease of those who don't name one, in ms. */
  readonly leaseMs: number;
}

/**
 * Makes the store that the options of a module ask for.
 *
 * @throws LockOptionsError when the connection is none, or can't do what is asked for
 */
export function storeFor({ durability, ...options }: StoreTerms): LockStore {
  const { connection } = options;
  if (!isCluster(connection)) return durability ? new DurableLockStore({ ...options, durability }) : new RedisLockStore(options);
  if (!durability) return new ClusterLockStore(connection, options);
  throw new LockOptionsError('"durability" can\'t be had on a Redis Cluster: "WAIT" would have to go to the node of each key. Give one Redis with replicas, or leave it out.');
}
