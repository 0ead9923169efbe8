import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockTimeoutError, LockUnavailableError } from 'nest-redis-lock';
import { MAX_DROPPED } from '../../lib/redis/lua/constants.js';
import { until } from '../support/deferred.js';
import { startFakeSentinel } from '../support/redis/fake-sentinel.js';
import { figures, percentile } from '../support/lab.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { ofClients, RedisMonitor } from '../support/redis/redis-monitor.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';

/** A waiter asks again by itself at the latest after this long: 1.25 s, and something for a busy machine. */
const SAFETY_CHECK_MS = 1500;

/** A hand-off that is told, with a lot left for a busy machine; less than the soonest safety check. */
const TOLD_MS = 550;

describe('Waiting', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let redis: Redis;
  /** `there` reaches Redis through the proxy; `here` does not. */
  let here: ClosableLockService;
  let there: ClosableLockService;
  let said: string[];

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startProxy(server.port);
    redis = new Redis(server.url);
    said = [];
    here = lockService(redisStore({ connection: server.url, commandTimeout: '5s' }), { shutdownGrace: 0 });
    there = thereAs(proxy.url);
  });

  afterEach(async () => {
    await Promise.all([here.close(), there.close()]);
    redis.disconnect();
    await proxy.stop();
    await server.stop();
  });

  const thereAs = (connection: string, commandTimeout = 1000) =>
    lockService(
      redisStore(
        { connection, commandTimeout },
        { unsubscribed: () => said.push('deaf'), subscribed: () => said.push('hears') },
      ),
      { shutdownGrace: 0 },
    );

  const queued = (count: number, key = 'account:1') =>
    until(async () => (await redis.zcard(`{lock:${key}}:queue`)) === count);

  const subscribed = () => until(async () => ((await redis.pubsub('CHANNELS')) as string[]).length > 0);

  /** How long the key stays free, from the unlock of one holder until the next, who waits, is inside. */
  async function handOff(from: ClosableLockService, to: ClosableLockService): Promise<number> {
    const first = await from.lock('account:1');
    const waiting = to.lock('account:1', { fair: true });
    await queued(1);
    await subscribed().catch(() => undefined);
    const unlockedAt = performance.now();
    await first.unlock();
    const next = await waiting;
    const waited = performance.now() - unlockedAt;
    await next.unlock();
    return waited;
  }

  describe('by messages', () => {
    it.each([
      ['a lock', {}, {}],
      ['a reader', { mode: 'read' }, {}],
      ['a permit', { permits: 1 }, { permits: 1 }],
    ] as const)(
      'a waiter in another process enters as soon as the `atLeast` of %s has passed',
      async (_what, kind, waits) => {
        const first = await here.lock('account:1', { ...kind, atLeast: 200 });
        const waiting = there.lock('account:1', waits);
        await queued(1);
        await subscribed();
        await first.unlock();
        const next = await waiting;
        // The soonest safety check is 750 ms after the waiter has queued.
        expect(Date.now() - first.acquiredAt.getTime()).toBeLessThan(700);
        await next.unlock();
      },
    );

    it('a waiter in another process than the holder is notified at once, also by the first hand-off ever', async () => {
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      expect(await handOff(there, here)).toBeLessThan(TOLD_MS);
      expect(said).toEqual([]);
    });

    it('a waiter is notified at once when the key is freed while its subscription is still on its way', async () => {
      const first = await here.lock('account:1');
      const waiting = there.lock('account:1');
      await queued(1);
      const unlockedAt = performance.now();
      await first.unlock();
      await waiting;
      expect(performance.now() - unlockedAt).toBeLessThan(TOLD_MS);
    });
  });

  describe('without a subscription', () => {
    it('a waiter without a subscription is served by its safety check, and says so once', async () => {
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      proxy.subscribers.refuse();
      await until(() => said.length > 0);
      const first = await here.lock('account:1');
      const waiting = there.lock('account:1');
      await queued(1);
      const unlockedAt = performance.now();
      await first.unlock();
      await (await waiting).unlock();
      expect(performance.now() - unlockedAt).toBeLessThan(SAFETY_CHECK_MS);
      expect(said).toEqual(['deaf']);

      proxy.subscribers.heal();
      await until(() => said.length > 1);
      expect(said).toEqual(['deaf', 'hears']);
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      expect(said).toEqual(['deaf', 'hears']);
    }, 20_000);

    it('a waiter asks at once when its subscription is back, so that no freed key lies there', async () => {
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      const first = await here.lock('account:1');
      const waiting = there.lock('account:1');
      await queued(1);
      proxy.subscribers.cut();
      await until(() => said.includes('deaf'));
      const unlockedAt = performance.now();
      await first.unlock();
      await waiting;
      expect(performance.now() - unlockedAt).toBeLessThan(TOLD_MS);
    });

    it('a waiter notices after one missed hand-off that its subscription is dead, and connects again', async () => {
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      proxy.subscribers.swallow();
      expect(await handOff(here, there)).toBeLessThan(SAFETY_CHECK_MS);
      await until(() => said.length > 1);
      expect(said).toEqual(['deaf', 'hears']);
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
    }, 20_000);

    it('a waiter notices that the server has dropped its subscription while others keep the key busy', async () => {
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      const another = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
      let isBusy = true;
      const loop = async (locks: ClosableLockService) => {
        while (isBusy) await locks.withLock('account:1', () => sleep(3), { fair: true });
      };
      const loops = [here, here, another, another].map(loop);
      proxy.subscribers.loseServer();
      // Each call waits for a shorter time than it takes until it asks again.
      const ask = () => there.withLock('account:1', () => undefined, { wait: 500 }).catch(() => undefined);
      await until(() => ask().then(() => said.length > 1), 15_000);
      expect(said).toEqual(['deaf', 'hears']);
      isBusy = false;
      await Promise.all(loops);
      await another.close();
    }, 20_000);

    it('a process notices by one unanswered question to another process that its subscription is dead', async () => {
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      const { fence } = await here.lock('account:1');
      proxy.subscribers.swallow();
      expect((await there.inspect('account:1'))!.holder.fence).toBeUndefined();
      await until(() => said.length > 1);
      expect(said).toEqual(['deaf', 'hears']);
      expect((await there.inspect('account:1'))!.holder.fence).toBe(fence);
    }, 20_000);
  });

  it('a subscription that stays with a former master moves to the next one behind their address', async () => {
    const next = await startRedis();
    const atNext = new Redis(next.url);
    const another = thereAs(proxy.url);
    for (const locks of [there, another]) await locks.withLock('account:1', () => undefined, { fair: true });
    await until(async () => ((await redis.pubsub('CHANNELS')) as string[]).length === 2);
    proxy.leadTo(next.port);
    await redis.replicaof('127.0.0.1', next.port);
    for (const locks of [there, another])
      await until(() =>
        locks
          .withLock('account:1', () => true)
          .catch((error: unknown) => {
            expect(error).toBeInstanceOf(LockUnavailableError);
            return false;
          }),
      );
    await until(async () => ((await atNext.pubsub('CHANNELS')) as string[]).length === 2, 10_000);
    await another.close();
    atNext.disconnect();
    await next.stop();
  }, 20_000);

  describe('without rights on the channel', () => {
    const RIGHTS = ['on', '>password', '~*', '+@all', 'resetchannels'];

    beforeEach(async () => {
      await redis.acl('SETUSER', 'locks', ...RIGHTS);
      await there.close();
      there = thereAs(`redis://locks:password@127.0.0.1:${proxy.port}`, 2000);
    });

    it('a waiter that may not use the channel is served by its safety check, and says so once', async () => {
      expect(await handOff(here, there)).toBeLessThan(SAFETY_CHECK_MS);
      expect(await handOff(here, there)).toBeLessThan(SAFETY_CHECK_MS);
      expect(said).toEqual(['deaf']);
    }, 20_000);

    it('a holder that may not use the channel leaves the key to the next one within a safety check', async () => {
      expect(await handOff(there, here)).toBeLessThan(SAFETY_CHECK_MS);
    }, 20_000);

    it('a waiter is notified at once when it may use the channel and its connection is new', async () => {
      expect(await handOff(here, there)).toBeLessThan(SAFETY_CHECK_MS);
      await redis.acl('SETUSER', 'locks', '&{lock:}:wake:*');
      await redis.client('KILL', 'USER', 'locks');
      await until(() => said.length > 1);
      expect(said).toEqual(['deaf', 'hears']);
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      expect(await handOff(there, here)).toBeLessThan(TOLD_MS);
    }, 20_000);
  });

  describe('with late messages', () => {
    it('a waiter that hears of its grant late does not enter when its lease is over', async () => {
      expect(await handOff(here, there)).toBeLessThan(TOLD_MS);
      const first = await here.lock('account:1');
      const waiting = there.lock('account:1', { lease: 200 });
      await queued(1);
      proxy.subscribers.hold();
      await first.unlock();
      expect(await redis.zcard('{lock:account:1}:queue')).toBe(0);
      const other = await here.lock('account:1');
      await queued(1); // it has asked again
      proxy.subscribers.heal();
      let gotIn = false;
      void waiting.then(() => (gotIn = true));
      await there.isLocked('account:1');
      // Time to enter by mistake, on the late message.
      await sleep(50);
      expect(gotIn).toBe(false);
      await other.unlock();
      const lock = await waiting;
      expect(lock.fence).toBeGreaterThan(other.fence);
      await lock.unlock();
    }, 20_000);
  });

  describe('behind thousands of dead waiters', () => {
    const DEAD = 5000;

    /** They wait for `account:1`, and have not asked for long. */
    const leaveDead = () =>
      redis.eval(
        `for n = 1, ARGV[1] do
          redis.call('ZADD', KEYS[1], n, 'host:1:AAAAAAAAAAAAAAAA.' .. n .. ' 30000 exclusive')
          redis.call('ZADD', KEYS[2], 1, 'host:1:AAAAAAAAAAAAAAAA.' .. n)
        end`,
        2, '{lock:account:1}:queue', '{lock:account:1}:alive', DEAD,
      ); // prettier-ignore

    /** How many left the queue in each command. */
    async function removedByEach(work: () => Promise<unknown>): Promise<number[]> {
      const monitor = await RedisMonitor.start(server.port);
      try {
        await work();
        const removed = [0];
        for (const { inScript, args } of await monitor.commands()) {
          if (!inScript) removed.push(0);
          else if (/^zrem$/i.test(args[0]!) && args[1]!.endsWith(':queue')) removed.push(removed.pop()! + 1);
        }
        return removed;
      } finally {
        monitor.stop();
      }
    }

    it('a waiter behind thousands of dead ones comes in, though no call walks through all of them', async () => {
      const holder = await here.lock('account:1');
      await leaveDead();
      await there.close();
      there = thereAs(proxy.url, 5000);
      const waiting = there.lock('account:1', { wait: '20s' });
      await queued(DEAD + 1);
      const removed = await removedByEach(async () => {
        await holder.unlock();
        await (await waiting).unlock();
      });
      expect(Math.max(...removed)).toBeLessThanOrEqual(MAX_DROPPED + 1);
      expect(await redis.keys('*')).toEqual(['{lock:}:fence']);
    });

    it('a new caller behind thousands of dead waiters asks until it is through', async () => {
      await leaveDead();
      await redis.zadd('{lock:account:1}:alive', Date.now() + 60_000, 'host:1:AAAAAAAAAAAAAAAA.5000');
      const lock = await here.lock('account:1', { wait: '20s' });
      expect(await redis.zcard('{lock:account:1}:queue')).toBe(1);
      await lock.unlock();
    });
  });

  describe('for the lock of another library', () => {
    /** How often a caller asks that waits for a second. */
    async function asksInVain(): Promise<number> {
      const monitor = await RedisMonitor.start(server.port);
      try {
        await expect(here.lock('account:1', { wait: 1000 })).rejects.toBeInstanceOf(LockTimeoutError);
        return ofClients(await monitor.commands()).filter((command) => command.some((arg) => arg.startsWith('queue')))
          .length;
      } finally {
        monitor.stop();
      }
    }

    it('a waiter for the lock of another library asks several times a second, otherwise about once', async () => {
      const lock = await there.lock('account:1');
      expect(await asksInVain()).toBeLessThanOrEqual(3);
      await lock.unlock();
      await redis.set('lock:account:1', 'theirs', 'PX', 60_000);
      const asked = await asksInVain();
      expect(asked).toBeGreaterThanOrEqual(5);
      expect(asked).toBeLessThanOrEqual(12);
      await redis.set('lock:account:1', 'no token is as long '.repeat(10), 'PX', 60_000);
      expect(await asksInVain()).toBeLessThanOrEqual(3);
    });
  });

  describe('time-outs', () => {
    beforeEach(async () => {
      await there.close();
      there = thereAs(proxy.url, 5000);
    });

    it('a waiter gives up when its wait is over, to a few ms, and says who has the key', async () => {
      const holder = await here.lock('account:1');
      const waits = Array.from({ length: 50 }, (_, number) => 100 + 4 * number);
      // A busy machine is late for everybody: how late is what plain timers of the same length say, with a round trip
      // each, as who gives up tells Redis.
      const startedAt = performance.now();
      const lateness = async (wait: number) => {
        await sleep(wait);
        await redis.ping();
        return performance.now() - startedAt - wait;
      };
      const timers = Promise.all(waits.map(lateness));
      const errors = await Promise.all(
        waits.map((wait, number) =>
          (number % 2 ? here : there)
            .lock('account:1', { wait, fair: number % 4 > 1 })
            .catch((error: unknown) => error),
        ),
      );
      const late = errors.map((error, number) => {
        expect(error).toBeInstanceOf(LockTimeoutError);
        const { waitedMs, detail } = error as LockTimeoutError;
        // One that waits behind another of its process, and never asks Redis, does not know who has the key.
        const knows = number % 2 === 1 || number % 4 > 1;
        if (knows)
          expect(detail).toMatch(
            new RegExp(`^Gave up waiting for lock "account:1" after \\d+ ms \\(holder .+:${process.pid}[,)]`),
          );
        return waitedMs - waits[number]!;
      });
      expect(Math.min(...late)).toBeGreaterThanOrEqual(-2);
      const asTimers = await timers;
      expect(percentile(late, 0.5) - percentile(asTimers, 0.5)).toBeLessThan(30);
      expect(Math.max(...late) - Math.max(...asTimers)).toBeLessThan(300);
      figures('waits end late, ms', {
        least: Math.min(...late),
        p50: percentile(late, 0.5),
        p90: percentile(late, 0.9),
        most: Math.max(...late),
      });
      await holder.unlock();
      expect(await redis.keys('*')).toEqual(['{lock:}:fence']);
    });

    it('a waiter gives up also when its subscription neither comes nor fails', async () => {
      const sentinel = await startFakeSentinel(server.port);
      const client = new Redis({
        sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
        name: 'main',
        protocol: 2,
      }).on('error', () => undefined);
      const borrower = lockService(redisStore({ connection: client }), { shutdownGrace: 0 });
      try {
        await client.ping();
        await sentinel.stop();
        await redis.set('lock:account:1', 'theirs');
        await expect(borrower.lock('account:1', { wait: 300 })).rejects.toBeInstanceOf(LockTimeoutError);
        await redis.del('lock:account:1');
        expect(await borrower.withLock('account:1', () => 'inside')).toBe('inside');
      } finally {
        await borrower.close();
        client.disconnect();
      }
    }, 20_000);

    it('a waiter that gives up says how many were before it, wherever they wait', async () => {
      await here.lock('account:1');
      const ahead: number[] = [];
      const calls: Promise<unknown>[] = [];
      const services = [there, there, here, there, here, here];
      for (const [count, service] of services.entries()) {
        // The last one gives up first: all before it are still there.
        calls.push(
          service
            .lock('account:1', { wait: 2500 - 300 * count, fair: true })
            .catch((error: LockTimeoutError) => (ahead[count] = error.ahead)),
        );
        await queued(count + 1);
      }
      await Promise.all(calls);
      expect(ahead).toEqual([0, 1, 2, 3, 4, 5]);
    });
  });
});
