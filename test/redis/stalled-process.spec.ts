import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { turn, until } from '../support/deferred.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const TIMEOUT_MS = 400;
const options = { commandTimeout: TIMEOUT_MS, lease: '1s' } as const;

/** As work that does not let go of the event loop: a schema that is built, a large module that is loaded. */
const standStill = (ms: number) => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('A process that stands still for longer than a command time-out', () => {
  let server: RedisServer;
  let redis: Redis;
  let locks: ClosableLockService;
  let lent: Redis | undefined;

  withRedis((one) => ({ server, redis } = one));

  afterEach(async () => {
    await locks.close();
    lent?.disconnect();
    lent = undefined;
  });

  it('its first call gets its lock over a connection of its own', async () => {
    locks = lockService(redisStore({ connection: server.url, ...options }));
    await getsItsLock();
  });

  it('its log does not say that Redis can not be reached, when the attempt to connect took too long', async () => {
    const down: string[] = [];
    const connection = { host: '127.0.0.1', port: server.port, connectTimeout: 100 };
    locks = lockService(redisStore({ connection, ...options }, { down: (_, { message }) => void down.push(message) }));
    const call = locks.withLock('account:42', () => 'done');
    // The attempt has begun then.
    await new Promise<void>((resolve) => process.nextTick(resolve));
    standStill(2 * TIMEOUT_MS);
    expect(await call).toBe('done');
    expect(down).toEqual([]);
  });

  it('its first call gets its lock over a client that the app lends', async () => {
    lent = new Redis(server.url);
    locks = lockService(redisStore({ connection: lent, ...options }));
    await getsItsLock();
  });

  it('a call gets its lock while its connection is made again', async () => {
    locks = lockService(redisStore({ connection: server.url, ...options }));
    await locks.withLock('account:42', () => undefined);
    await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await getsItsLock();
  });

  it('its first call gets its lock on a quorum, which looks first how long its nodes have been up', async () => {
    const nodes = await Promise.all([1, 2, 3].map(() => startRedis()));
    try {
      const service = () => lockService(redisStore({ connection: nodes.map(({ url }) => url), ...options }), options);
      // The nodes are too young at first.
      await until(async () => {
        const first = service();
        const isGranted = await first.withLock('account:42', () => true).catch(() => false);
        await first.close();
        return isGranted;
      });
      locks = service();
      await getsItsLock();
    } finally {
      await Promise.all(nodes.map((node) => node.stop()));
    }
  });

  it('a call ends all the same, when Redis hangs and the process stands still again and again', async () => {
    locks = lockService(redisStore({ connection: server.url, ...options }));
    await locks.withLock('account:42', () => undefined);
    process.kill(server.pid, 'SIGSTOP');
    try {
      let isOver = false;
      locks.lock('account:42').catch(() => (isOver = true));
      let stalls = 0;
      for (; !isOver && stalls < 20; stalls++) {
        standStill(0.7 * TIMEOUT_MS);
        for (let turns = 0; turns < 5; turns++) await turn();
      }
      expect(stalls).toBeLessThan(10);
    } finally {
      process.kill(server.pid, 'SIGCONT');
    }
  });

  async function getsItsLock(): Promise<void> {
    const call = locks.withLock('account:42', () => 'done');
    standStill(2 * TIMEOUT_MS);
    expect(await call).toBe('done');
  }
});
