import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import type { Redis, RedisOptions } from 'ioredis';
import { redisClient } from '../../lib/redis/connection/redis-client.js';
import { UNHEARD } from '../../lib/redis/connection/sentinel-failovers.js';
import { subscriberOf } from '../../lib/redis/connection/further-client.js';
import { deferred, until } from '../support/deferred.js';
import { freePort } from '../support/free-port.mjs';
import { startFakeSentinel, type FakeSentinel } from '../support/redis/fake-sentinel.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';

const host = '127.0.0.1';

describe('A Sentinel that gives no answer, or restarts', () => {
  let server: RedisServer;
  let sentinel: FakeSentinel;
  const clients: Redis[] = [];

  withRedis((one) => ({ server } = one));

  beforeEach(async () => {
    sentinel = await startFakeSentinel(server.port);
  });

  afterEach(async () => {
    for (const client of clients.splice(0)) client.disconnect();
    await sentinel.stop();
  });

  /** A client of ours, and one that subscribes, as the library makes them. */
  function clientsOf(options: RedisOptions, commandTimeoutMs: number): readonly Redis[] {
    const first = redisClient({ name: 'main', ...options }, commandTimeoutMs);
    const both = [first.redis, subscriberOf(first, commandTimeoutMs)];
    for (const redis of both) redis.on('error', () => undefined);
    clients.push(...both);
    return both;
  }

  /** Tells a client of a failover that leads it away from its server. */
  async function leavesWhenTold(redis: Redis): Promise<void> {
    await until(() => sentinel.subscribers === 1);
    const left = once(redis, 'close');
    sentinel.announce(1);
    await left;
    redis.disconnect();
    await until(() => sentinel.subscribers === 0);
  }

  it.each([
    ['the first client', 0],
    ['the one that subscribes', 1],
  ])('gets twice as long each time, until it has led %s to a server', async (_who, which) => {
    const redis = clientsOf({ sentinels: [{ host, port: sentinel.port }] }, 300)[which]!;
    const timeouts: unknown[] = [];
    sentinel.beforeAnswer = () => {
      timeouts.push(redis.options.sentinelCommandTimeout);
      return timeouts.length < 4 ? new Promise(() => undefined) : undefined;
    };
    await redis.connect();
    expect(timeouts.slice(0, 4)).toEqual([100, 200, 400, 800]);
    expect(redis.options.sentinelCommandTimeout).toBe(100);
  });

  it('gets no longer where the app says how long', async () => {
    const options = { sentinels: [{ host, port: sentinel.port }], sentinelCommandTimeout: 100 };
    for (const redis of clientsOf(options, 300)) {
      const timeouts: unknown[] = [];
      sentinel.beforeAnswer = () => {
        timeouts.push(redis.options.sentinelCommandTimeout);
        return timeouts.length < 3 ? new Promise(() => undefined) : undefined;
      };
      await redis.connect();
      expect(new Set(timeouts)).toEqual(new Set([100]));
    }
  });

  it('gets no longer because Sentinels refuse for a while', async () => {
    const port = await freePort();
    let attempts = 0;
    const sentinelRetryStrategy = () => (++attempts, 1);
    const [redis] = clientsOf({ sentinels: [{ host, port }], sentinelRetryStrategy }, 30_000);
    redis!.connect().catch(() => undefined);
    await until(() => attempts > 5);
    expect(redis!.options.sentinelCommandTimeout).toBe(10_000);
  });

  it('is listened to again when it is back, so that a failover is heard of at once', async () => {
    for (const redis of clientsOf({ sentinels: [{ host, port: sentinel.port }] }, 3000)) {
      await redis.connect();
      await until(() => sentinel.subscribers === 1);
      sentinel.hangUp();
      await leavesWhenTold(redis);
    }
  });

  it('may tell of other masters, and of one failover again: the client stays', async () => {
    for (const redis of clientsOf({ sentinels: [{ host, port: sentinel.port }] }, 3000)) {
      await redis.connect();
      await until(() => sentinel.subscribers === 1);
      const { stream } = redis;
      sentinel.announce(1, 'another');
      sentinel.announce(server.port);
      // The same connection brings them, and then its end.
      const { epochQuestions } = sentinel;
      sentinel.hangUp();
      await until(() => sentinel.epochQuestions > epochQuestions);
      await redis.ping();
      expect(redis.stream === stream).toBe(true);
      redis.disconnect();
      await until(() => sentinel.subscribers === 0);
    }
  });

  it.each([
    [
      'that the app does not know',
      () => {
        throw new Error('unknown');
      },
    ],
    ['that the app reaches at the same address', () => ({ host, port: server.port })],
  ])('may tell of a server %s: the client asks again', async (_what, elsewhere) => {
    const natMap = (address: string) => (address === '127.0.0.1:1' ? elsewhere() : null);
    for (const redis of clientsOf({ sentinels: [{ host, port: sentinel.port }], natMap }, 3000)) {
      await redis.connect();
      await leavesWhenTold(redis);
    }
  });

  it('is not listened to by a client that is left while it connects to the server', async () => {
    for (const redis of clientsOf(
      { sentinels: [{ host, port: sentinel.port }], enableReadyCheck: false, protocol: 2 },
      3000,
    )) {
      redis.connect().catch(() => undefined);
      await once(redis, 'connecting');
      const { connector } = redis as unknown as { connector: { stream?: Socket } };
      await until(() => connector.stream !== undefined);
      redis.disconnect();
      await once(redis, 'end');
    }
    const other = connect(sentinel.port, host);
    await once(other, 'connect');
    other.destroy();
    await until(() => sentinel.clients === 0);
  });

  it('is asked for the master when it is back, as there may have been a failover that nobody heard of', async () => {
    const other = await startRedis();
    try {
      for (const redis of clientsOf({ sentinels: [{ host, port: sentinel.port }] }, 3000)) {
        sentinel.masterPort = server.port;
        await redis.connect();
        await until(() => sentinel.subscribers === 1);
        sentinel.masterPort = other.port;
        sentinel.epoch++;
        sentinel.hangUp();
        await once(redis, 'ready');
        expect(redis.stream).toMatchObject({ remotePort: other.port });
        redis.disconnect();
        await until(() => sentinel.subscribers === 0);
      }
    } finally {
      await other.stop();
    }
  });

  it('is asked for the master also when it was away from the start', async () => {
    const [other, second] = [await startRedis(), await startFakeSentinel(server.port)];
    const proxy = await startProxy(second.port);
    const sentinels = [sentinel, proxy].map(({ port }) => ({ host, port }));
    try {
      for (const redis of clientsOf({ sentinels, sentinelReconnectStrategy: () => 10 }, 3000)) {
        proxy.refuse();
        sentinel.masterPort = server.port;
        await redis.connect();
        await until(() => sentinel.subscribers === 1);
        for (const one of [sentinel, second]) one.masterPort = other.port;
        second.epoch++;
        proxy.welcome();
        await once(redis, 'ready');
        expect(redis.stream).toMatchObject({ remotePort: other.port });
        sentinel.epoch = second.epoch;
        redis.disconnect();
        await until(() => sentinel.subscribers + second.subscribers === 0);
      }
    } finally {
      await Promise.all([other.stop(), second.stop(), proxy.stop()]);
    }
  });

  it.each([
    ['names the same master', 0],
    ['knows of no later failover, as when it knows only its configuration file', 1],
  ])('is left alone when it is back and %s', async (_what, elsewhere) => {
    for (const redis of clientsOf({ sentinels: [{ host, port: sentinel.port }] }, 3000)) {
      await redis.connect();
      await until(() => sentinel.subscribers === 1);
      const { stream } = redis;
      const { epochQuestions } = sentinel;
      sentinel.masterPort = server.port + elsewhere;
      sentinel.hangUp();
      await until(() => sentinel.epochQuestions > epochQuestions && sentinel.subscribers === 1);
      await redis.ping();
      expect(redis.stream === stream).toBe(true);
      sentinel.masterPort = server.port;
      redis.disconnect();
      await until(() => sentinel.subscribers === 0);
    }
  });

  it.each(['subscribe', 'master'] as const)('that refuses "%s" is told of, once', async (refused) => {
    sentinel.refused = refused;
    for (const redis of clientsOf({ sentinels: [{ host, port: sentinel.port }] }, 3000)) {
      const told: string[] = [];
      redis.on(UNHEARD, (problem: string) => told.push(problem));
      await redis.connect();
      await until(() => told.length > 0);
      sentinel.hangUp();
      const { epochQuestions } = sentinel;
      await until(() => sentinel.epochQuestions > epochQuestions);
      await redis.ping();
      expect(told).toEqual([
        expect.stringMatching(/"\+sentinel\|master", and the channel "&\+switch-master"\. \(NOPERM No permissions\)$/),
      ]);
      redis.disconnect();
    }
  });

  // Jest fails the file for a rejection that nobody handles, whichever test it comes from.
  it('can be left while it is about to be listened to again', async () => {
    for (const redis of clientsOf({ sentinels: [{ host, port: sentinel.port }] }, 3000)) {
      sentinel.beforeSubscribed = () => undefined;
      await redis.connect();
      await until(() => sentinel.subscribers === 1);
      const isAsked = deferred();
      sentinel.beforeSubscribed = () => (isAsked.resolve(), new Promise(() => undefined));
      sentinel.hangUp();
      await isAsked.promise;
      redis.disconnect();
      await until(() => sentinel.clients === 0);
    }
  });
});
