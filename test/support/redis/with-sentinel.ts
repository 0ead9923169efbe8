import { afterAll, afterEach, beforeAll, expect } from '@jest/globals';
import { Redis } from 'ioredis';
import type { RedisLockModuleOptions } from 'nest-redis-lock';
import { until } from '../deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../stores/lock-services.js';
import { startSentinel, type RedisSentinel } from './redis-sentinel.js';

/** Longer than a failover takes. */
export const LEASE_MS = 9000;

/** Redis behind Sentinel for all tests of a block, with services and clients that end with each test. */
export class BehindSentinel {
  sentinel!: RedisSentinel;
  readonly #services: ClosableLockService[] = [];
  readonly #clients: Redis[] = [];

  /** What the module can be given as its connection: options of ioredis, or a client of the app. */
  readonly connections: readonly [name: string, connection: () => RedisLockModuleOptions['connection']][] = [
    ['options of ioredis', () => this.sentinel.connection],
    ['a client of the app', () => this.#appsClient()],
  ];

  /** Starts it before the tests of a block, and stops it after them. */
  static forAll(): BehindSentinel {
    const behind = new BehindSentinel();
    beforeAll(async () => void (behind.sentinel = await startSentinel()), 40_000);
    afterEach(() => behind.#heal(), 70_000);
    afterAll(() => behind.sentinel.stop());
    return behind;
  }

  service(connection: RedisLockModuleOptions['connection'], options: RedisLockModuleOptions = {}): ClosableLockService {
    const terms = { lease: LEASE_MS, wait: 20_000, commandTimeout: 6000, shutdownGrace: 0, connection, ...options };
    const made = lockService(redisStore(terms), terms);
    this.#services.push(made);
    return made;
  }

  /** Resolves when somebody waits for the key. */
  queued(key: string): Promise<void> {
    return until(async () => (await (await this.sentinel.master()).redis.zcard(`{lock:${key}}:queue`)) === 1);
  }

  /** Resolves when the replicas have what the master has. */
  async replicated(): Promise<void> {
    const { redis } = await this.sentinel.master();
    await redis.incr('written');
    expect(await redis.wait(2, 5000)).toBe(2);
  }

  /** As an app has it: it sends again by itself, and hears of a failover when the old master hangs up. */
  #appsClient(): Redis {
    const client = new Redis({ ...this.sentinel.connection }).on('error', () => undefined);
    this.#clients.push(client);
    return client;
  }

  async #heal(): Promise<void> {
    await Promise.all(this.#services.splice(0).map((service) => service.close()));
    for (const client of this.#clients.splice(0)) client.disconnect();
    await this.sentinel.heal();
  }
}
