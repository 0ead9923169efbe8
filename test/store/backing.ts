import type { LockStore } from 'nest-redis-lock';

/** Somewhere locks live. */
export interface Backing {
  /** A store on it, as another process would have one. */
  store(): LockStore;
  /** Whether those who are handed a lock ask the store once more before they have it. */
  readonly handOffsAreConfirmed?: boolean;
  /** Ends everything. */
  stop(): Promise<void>;
  /** What stands under the lock keys and their companions right now: nothing, when nobody holds one or waits. */
  lockKeys(): Promise<readonly string[]>;
  /** Resolves when so many are queued for the key in the store. */
  waiters(key: string, count: number): Promise<void>;
}
