import { afterEach, beforeEach } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockOptions } from 'nest-redis-lock';
import { TestChild } from './child-process.js';
import { Contender, type Keys, type Plan } from './contenders.js';
import { until } from '../deferred.js';
import { Journals } from './journals.js';
import { lockService, redisStore, type ClosableLockService } from '../stores/lock-services.js';
import { startRedis, type RedisServer } from '../redis/redis-server.js';

/** A process that holds a lock, or several shares of one. */
export interface Holder {
  readonly child: TestChild;
  readonly fence: number;
  readonly fences: readonly number[];
  readonly acquiredAt: string;
}

interface HolderOptions extends LockOptions {
  readonly lease: number;
  readonly shares?: number;
}

/** Resolves when each of these processes hears what it is told. */
export function listening(redis: Redis, pids: readonly number[]): Promise<void> {
  return until(async () => {
    const channels = (await redis.pubsub('CHANNELS')) as string[];
    return pids.every((pid) => channels.some((channel) => channel.includes(`:${pid}:`)));
  });
}

/** A Redis, a lock service in this process, and others; all new for each test, and gone after it. */
export class Stage {
  server!: RedisServer;
  redis!: Redis;
  here!: ClosableLockService;
  journals!: Journals;
  #children: { kill(): Promise<void> }[] = [];

  /** Takes it up before each test of a `describe`, and down after it. */
  static forEach(): Stage {
    const stage = new Stage();
    beforeEach(() => stage.#open());
    afterEach(() => stage.#close());
    return stage;
  }

  /** Starts a process that takes the key, hears what it is told, and holds it until it is told to stop. */
  async holder(key: string, { lease, shares = 1, ...options }: HolderOptions): Promise<Holder> {
    const child = new TestChild('hold.mjs', this.server.url, key, lease, JSON.stringify(options), shares);
    this.#children.push(child);
    const held = await child.message<Omit<Holder, 'child'>>();
    await listening(this.redis, [child.process.pid!]);
    return { child, ...held };
  }

  /** Starts a process that wants the key and has to wait: resolves when so many stand in the queue of Redis. */
  async waiter(key: string, count: number, { lease, shares = 1, ...options }: HolderOptions): Promise<TestChild> {
    const child = new TestChild('hold.mjs', this.server.url, key, lease, JSON.stringify(options), shares);
    this.#children.push(child);
    await until(async () => (await this.redis.zcard(`{lock:${key}}:queue`)) === count, 20_000);
    return child;
  }

  /** Starts processes that contend, with a journal each, and lets them begin together. */
  async contenders(keys: Keys, ...plans: Plan[]): Promise<(Contender & { readonly file: string })[]> {
    const files = plans.map(() => this.journals.next());
    const contenders = await Contender.start(
      this.server.url,
      keys,
      ...plans.map((plan, index) => ({ ...plan, file: files[index]! })),
    );
    this.#children.push(...contenders);
    for (const contender of contenders) contender.go();
    return contenders.map((contender, index) => Object.assign(contender, { file: files[index]! }));
  }

  /** Resolves when so many wait in Redis for the key. */
  queued(key: string, count: number): Promise<void> {
    return until(async () => (await this.redis.zcard(`{lock:${key}}:queue`)) === count);
  }

  /** Resolves when this process hears what it is told. */
  listening(): Promise<void> {
    return listening(this.redis, [process.pid]);
  }

  async #open(): Promise<void> {
    this.server = await startRedis();
    this.redis = new Redis(this.server.url);
    this.here = lockService(redisStore({ connection: this.server.url, commandTimeout: '10s' }), { shutdownGrace: 0 });
    this.here.onApplicationBootstrap();
    this.journals = new Journals();
    this.#children = [];
  }

  async #close(): Promise<void> {
    await Promise.all(this.#children.map((child) => child.kill()));
    await this.here.close();
    this.redis.disconnect();
    await this.server.stop();
    this.journals.remove();
  }
}
