import type { AcquireCommand, Granted, Held, LockStore, Renewal } from '../store/lock-store.js';
import { KeyNames } from './key-names.js';
import { Orphans } from './orphans.js';
import { redisClient, type RedisConnectionOption } from './redis-client.js';
import { NotSentError, RedisConnection, type OutageLog } from './redis-connection.js';
import { ACQUIRE } from './scripts/acquire.script.js';
import { HOLDER } from './scripts/holder.script.js';
import { RELEASE } from './scripts/release.script.js';
import { RENEW } from './scripts/renew.script.js';

export interface RedisLockStoreOptions {
  readonly connection: RedisConnectionOption;
  readonly keyPrefix: string;
  readonly commandTimeoutMs: number;
  readonly log: OutageLog;
}

/** Locks on one Redis: each operation is one script, atomic, and safe to be run twice. */
export class RedisLockStore implements LockStore {
  readonly #redis: RedisConnection;
  readonly #names: KeyNames;
  readonly #orphans: Orphans;

  constructor({ connection, keyPrefix, commandTimeoutMs, log }: RedisLockStoreOptions) {
    this.#names = new KeyNames(keyPrefix);
    this.#orphans = new Orphans((lock) => this.#free(lock));
    this.#redis = new RedisConnection(redisClient(connection, commandTimeoutMs), commandTimeoutMs, log, () => void this.#orphans.reconnected());
  }

  open(): void {
    this.#redis.open();
  }

  async acquire(command: AcquireCommand): Promise<Granted | Held> {
    const { keys, token, leaseMs } = command;
    try {
      return await this.#redis.run(ACQUIRE, [...this.#lockNames(keys), this.#names.fence], [token, leaseMs]);
    } catch (error) {
      if (!(error instanceof NotSentError)) this.#orphans.add(command);
      throw error;
    }
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly boolean[]> {
    const keys = renewals.flatMap((lock) => this.#lockNames(lock.keys));
    const args = renewals.flatMap(({ keys, token, leaseMs }) => keys.flatMap(() => [token, leaseMs]));
    const renewed = await this.#redis.run(RENEW, keys, args);
    let from = 0;
    return renewals.map((lock) => renewed.slice(from, (from += lock.keys.length)).every(Boolean));
  }

  async release(lock: Renewal): Promise<boolean> {
    const drops = this.#redis.drops;
    try {
      const freed = await this.#free(lock);
      // After a drop, a client that sends commands again may have freed the key by its first try: not a loss.
      return freed === lock.keys.length || drops !== this.#redis.drops;
    } catch (error) {
      this.#orphans.add(lock);
      throw error;
    }
  }

  async isLocked(key: string): Promise<boolean> {
    return (await this.#holder(key)) !== undefined;
  }

  /** By the token that it finds: deleted blindly and sent twice, it could free the lock of the next one. */
  async forceRelease(key: string): Promise<boolean> {
    for (;;) {
      const token = await this.#holder(key);
      if (token === undefined) return false;
      if (await this.release({ keys: [key], token, leaseMs: 0 })) return true;
    }
  }

  async close(): Promise<void> {
    this.#orphans.close();
    this.#redis.close();
  }

  #holder(key: string): Promise<string | undefined> {
    return this.#redis.run(HOLDER, [this.#names.lock(key)], []);
  }

  #free({ keys, token }: Renewal): Promise<number> {
    return this.#redis.run(RELEASE, this.#lockNames(keys), [token]);
  }

  #lockNames(keys: readonly string[]): string[] {
    return keys.map((key) => this.#names.lock(key));
  }
}
