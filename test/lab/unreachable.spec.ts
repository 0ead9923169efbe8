import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError } from 'nest-redis-lock';
import { census, leftovers } from '../support/checker/census.js';
import { aborted, until } from '../support/deferred.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { lockInTheEnd } from '../support/stores/lock-in-the-end.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';

const LEASE_MS = 600;
const COMMAND_TIMEOUT_MS = 200;
const ROUNDS = sized(2, 100);

/** What a call may take longer than the command time-out on a busy machine. */
const SOME_MS = 500;

const OUTAGES: Record<string, (proxy: TcpProxy) => void> = {
  'replies are dropped': (proxy) => proxy.dropReplies(),
  'connections are reset': (proxy) => proxy.refuse(),
  'connections are half-open': (proxy) => {
    proxy.dropRequests();
    proxy.dropReplies();
  },
};

describe("Redis can't be reached", () => {
  let server: RedisServer;
  let redis: Redis;
  let proxy: TcpProxy;
  let here: ClosableLockService;

  beforeEach(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
    proxy = await startProxy(server.port);
    here = lockService(redisStore({ connection: proxy.url, commandTimeout: COMMAND_TIMEOUT_MS }), {
      lease: LEASE_MS,
      shutdownGrace: 0,
    });
  });

  afterEach(async () => {
    await here.close();
    redis.disconnect();
    await proxy.stop();
    await server.stop();
  });

  /** How long each of these takes to fail, as all must. */
  function failures(key: string): Promise<number[]> {
    const startedAt = performance.now();
    const calls = [
      here.lock(key),
      here.tryLock(key),
      here.withLock([key, 'b'], () => 'ran'),
      here.lock(key, { mode: 'read' }),
      here.lock(key, { permits: 2 }),
      here.isLocked(key),
      here.inspect(key),
      here.forceUnlock(key),
    ];
    return Promise.all(
      calls.map(async (call) => {
        expect(await (call as Promise<unknown>).catch((error: unknown) => error)).toBeInstanceOf(LockUnavailableError);
        return performance.now() - startedAt;
      }),
    );
  }

  it.each(Object.entries(OUTAGES))(
    'a held lock ends before the server ends it, and calls settle in time, when %s; then they work again',
    async (what, begin) => {
      const early: number[] = [];
      const took: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const key = `account:${round}`;
        // A busy machine may need longer than this short time-out for a call, most of all for the first one.
        const lock = await lockInTheEnd(here, key);
        const { signal } = lock;
        // The outage begins at any moment between two renewals.
        await sleep((Math.random() * LEASE_MS) / 3);
        begin(proxy);
        const failing = failures(`other:${round}`);
        // Where only replies are dropped, the server may still be told to renew it, so its lease ends later than this.
        const lastsMs = await redis.pttl(`lock:${key}`);
        const endsAt = performance.now() + lastsMs;
        const over = new Promise<boolean>((done) => setTimeout(() => done(signal.aborted), lastsMs));
        expect(await aborted(signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
        early.push(endsAt - performance.now());
        expect(await over).toBe(true);
        took.push(...(await failing));
        proxy.heal();
        proxy.welcome();
        await until(() =>
          here.isLocked('anything').then(
            () => true,
            () => false,
          ),
        );
        await lock.unlock();
      }
      figures(
        `Redis can't be reached: ${what}`,
        'the signal aborts before the server ends the lease; every call settles within the command time-out',
        {
          times: ROUNDS,
          'signal before the end on the server, ms: p50': percentile(early, 0.5),
          least: Math.min(...early),
          [`calls took ms, of ${COMMAND_TIMEOUT_MS}: p50`]: percentile(took, 0.5),
          most: Math.max(...took),
        },
      );
      expect(Math.max(...took)).toBeLessThan(COMMAND_TIMEOUT_MS + SOME_MS);
      expect(leftovers(await census([redis], LEASE_MS))).toEqual([]);
    },
    LONG ? 600_000 : 30_000,
  );
});
