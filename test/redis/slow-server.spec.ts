import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError, type RedisLockModuleOptions } from 'nest-redis-lock';
import { until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { ofClients, RedisMonitor } from '../support/redis/redis-monitor.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';

const COMMAND_TIMEOUT_MS = 300;

/** Longer than it takes to connect, and to try again. */
const QUIET_MS = 3000;

describe('A Redis that always replies too late', () => {
  let server: RedisServer;
  let proxy: TcpProxy;

  withRedis((one) => ({ server } = one));

  beforeEach(async () => (proxy = await startProxy(server.port)));
  afterEach(() => proxy.stop());

  const serviceOn = (connection: RedisLockModuleOptions['connection']): ClosableLockService =>
    lockService(redisStore({ connection, commandTimeout: COMMAND_TIMEOUT_MS }), { lease: '1s', shutdownGrace: 0 });

  it.each([1.2, 1.8])(
    'is left alone some time after the last call, though no lock could be given back in time (%p time-outs late)',
    async (late) => {
      const monitor = await RedisMonitor.start(server.port);
      const locks = serviceOn(proxy.url);
      await until(() => locks.withLock('warm up', () => true).catch(() => false));
      // Requests and replies take half of it each.
      proxy.delay((late / 2) * COMMAND_TIMEOUT_MS);
      for (const key of ['a', 'b', 'c']) await expect(locks.tryLock(key)).rejects.toBeInstanceOf(LockUnavailableError);
      let quietSince = performance.now();
      await until(async () => {
        if (ofClients(await monitor.commands()).length > 0) quietSince = performance.now();
        return performance.now() - quietSince > QUIET_MS;
      }, 30_000);
      await locks.close();
      monitor.stop();
    },
    40_000,
  );

  it.each([
    ['at once', false],
    ['when a last reply in time came after the first call that got none', true],
  ])(
    'has one line in the log %s, also over a client that the app lends, and most calls fail fast',
    async (_when, last) => {
      const client = new Redis(proxy.url);
      const log: string[] = [];
      // A busy machine has half of it: each reply comes after its call has failed, and before the next one has.
      const commandTimeout = 1000;
      const store = redisStore(
        { connection: client, commandTimeout },
        { down: () => log.push('down'), up: () => log.push('up') },
      );
      const locks = lockService(store, { lease: '1s', shutdownGrace: 0 });
      // From here on, the server knows both scripts.
      await locks.withLock('warm up', () => locks.isLocked('warm up'));
      const { replies } = proxy.wires[0]!;
      replies.hold();
      const lastInTime = last && locks.isLocked('a');
      if (last) await replies.nextHeld();
      // Requests and replies take half of it each.
      proxy.delay((1.5 / 2) * commandTimeout);
      if (last) setImmediate(() => replies.release());
      for (let time = 0; time < 4; time++) {
        const calls = ['a', 'b', 'c'].map((key) =>
          locks.tryLock(key).then(String, ({ detail }: { detail: string }) => detail),
        );
        const details = await Promise.all(calls);
        // What was sent before the first calls gets no reply before they fail.
        if (time === 0) replies.release();
        const fastOnes = details.filter((detail) => detail.includes('another call is probing it')).length;
        // By the second time, what could not be given back may be the probe.
        if (time > Number(last)) expect(last ? [2, 3] : [2]).toContain(fastOnes);
      }
      expect({ log, lastInTime: await lastInTime }).toEqual({ log: ['down'], lastInTime: false });
      proxy.delay(0);
      await until(() => locks.withLock('a', () => true).catch(() => false));
      expect(log).toEqual(['down', 'up']);
      await locks.close();
      client.disconnect();
    },
  );

  it('is left alone a lease after its late replies, also over a client that the app lends', async () => {
    const client = new Redis(proxy.url);
    const monitor = await RedisMonitor.start(server.port);
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    try {
      const locks = serviceOn(client);
      const lock = await locks.lock('a');
      const wire = proxy.wires[0]!;
      // No other connection is to take its place.
      proxy.dropReplies((_chunk, other) => other !== wire);
      wire.replies.hold();
      const released = wire.replies.nextHeld();
      const unlocked = lock.unlock();
      await released;
      await jest.advanceTimersByTimeAsync(COMMAND_TIMEOUT_MS);
      await unlocked;
      const attempted = wire.replies.nextHeld();
      await jest.advanceTimersByTimeAsync(500);
      await attempted;
      await jest.advanceTimersByTimeAsync(COMMAND_TIMEOUT_MS);
      wire.replies.release();
      await client.ping(); // so it has read the late replies
      wire.replies.hold();
      await jest.advanceTimersByTimeAsync(6000);
      wire.replies.release();
      await client.ping(); // so Redis has run what was sent
      await monitor.commands();
      await jest.advanceTimersByTimeAsync(60_000);
      await client.ping();
      expect(ofClients(await monitor.commands())).toEqual([]);
      await locks.close();
    } finally {
      jest.useRealTimers();
      client.disconnect();
      monitor.stop();
    }
  });
});
