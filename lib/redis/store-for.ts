import type { LockStore } from '../store/lock-store.js';
import { DurableLockStore, type DurabilityTerms } from './durable-lock.store.js';
import { RedisLockStore, type RedisLockStoreOptions } from './redis-lock.store.js';

interface StoreTerms extends RedisLockStoreOptions {
  readonly durability: DurabilityTerms | undefined;
  /** The lease of those who don't name one, in ms. */
  readonly leaseMs: number;
}

/** Makes the store that the options of a module ask for. */
export function storeFor({ durability, ...options }: StoreTerms): LockStore {
  return durability ? new DurableLockStore({ ...options, durability }) : new RedisLockStore(options);
}
