import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster } from 'ioredis';
import { once } from 'node:events';
import { LockKeyError, LockUnavailableError } from 'nest-redis-lock';
import { slotOf } from '../../lib/redis/cluster/cluster-slot.js';
import { until } from '../support/deferred.js';
import { keyAt, startClusterWithoutFailovers, type RedisCluster } from '../support/redis/redis-cluster.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const COMMAND_TIMEOUT_MS = 1000;

/** Too short for anybody who waits for a call that takes its whole time-out. */
const SHORT_WAIT_MS = 700;

/** A key of the second master, which is well all the time, and keys of the third, each in a slot of its own. */
const hot = keyAt(1);
const onThird = Array.from({ length: 8 }, (_, nth) => keyAt(2, nth));
const [cold, unused] = onThird as [string, string];

describe('Calls for keys on several nodes of a Redis Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let locks: ClosableLockService;
  let otherProcess: ClosableLockService;

  beforeEach(async () => {
    cluster = await startClusterWithoutFailovers();
    client = cluster.client();
    await once(client, 'ready');
    locks = serviceOn(client);
    otherProcess = serviceOn(cluster.client());
    for (const service of [locks, otherProcess])
      for (const key of [keyAt(0), hot, cold]) await service.withLock(key, () => undefined);
  }, 30_000);

  afterEach(async () => {
    await Promise.all([locks.close(), otherProcess.close()]);
    await cluster.stop();
  });

  function serviceOn(connection: Cluster): ClosableLockService {
    const store = redisStore({ connection, commandTimeout: COMMAND_TIMEOUT_MS });
    return lockService(store, { lease: '30s', shutdownGrace: 0 });
  }

  /** Each makes trouble, and returns the keys that are out of reach. */
  const troubles: Record<string, () => Promise<readonly string[]>> = {
    'its master is dead': async () => {
      process.kill(cluster.masters[2]!.pid, 'SIGKILL');
      return onThird;
    },
    'its master alone counts the cluster as down': async () => {
      const { redis } = cluster.masters[2]!;
      await redis.config('SET', 'cluster-require-full-coverage', 'yes');
      await redis.cluster('DELSLOTS', slotOf(`lock:${unused}`));
      return onThird;
    },
    'its slot was left open by a move': async () => {
      const [, target, source] = cluster.masters;
      await target!.redis.cluster('SETSLOT', slotOf(`lock:${cold}`), 'IMPORTING', source!.id);
      await source!.redis.cluster('SETSLOT', slotOf(`lock:${cold}`), 'MIGRATING', target!.id);
      return [cold];
    },
  };

  it.each(Object.keys(troubles))(
    'keep no key of other nodes from anybody while one key is out of reach: %s',
    async (trouble) => {
      const outOfReach = await troubles[trouble]!();
      let isOver = false;
      let failed = 0;
      const failsOnce = async (): Promise<void> => {
        const key = outOfReach[failed % outOfReach.length]!;
        const call = locks.withLock([hot, key], () => undefined, { wait: '20s' });
        await expect(call).rejects.toThrow(LockUnavailableError);
        failed++;
      };
      // Nobody knows before the first of them has failed.
      await failsOnce();
      const again = async (): Promise<void> => {
        while (!isOver) await failsOnce();
      };
      const errors: unknown[] = [];
      const onlyHot = async (service: ClosableLockService): Promise<void> => {
        while (!isOver)
          await service.withLock(hot, () => undefined, { wait: SHORT_WAIT_MS }).catch((error) => errors.push(error));
      };
      const calls = [again(), again(), onlyHot(locks), onlyHot(otherProcess)];
      await until(() => failed >= 7);
      isOver = true;
      await Promise.all(calls);
      expect(errors).toEqual([]);
    },
    30_000,
  );

  it('take what the client still sends for a call that has failed for no sign that its slot is served', async () => {
    const pings = async () => {
      const stats = await Promise.all(cluster.masters.map(({ redis }) => redis.info('commandstats')));
      return stats.reduce((sum, text) => sum + Number(/cmdstat_ping:calls=(\d+)/.exec(text)?.[1] ?? 0), 0);
    };
    await troubles['its slot was left open by a move']!();
    await expect(locks.withLock([hot, cold], () => undefined)).rejects.toThrow(LockUnavailableError);
    const before = await pings();
    await until(async () => (await pings()) > before);
    let isOver = false;
    const failing = expect(locks.withLock([hot, cold], () => undefined))
      .rejects.toThrow(LockUnavailableError)
      .finally(() => (isOver = true));
    while (!isOver) await otherProcess.withLock(hot, () => undefined, { wait: SHORT_WAIT_MS });
    await failing;
  }, 30_000);

  it('that wait in the queue of Redis fail when a further node dies, and keep none of their keys from others', async () => {
    const holder = await otherProcess.lock(hot);
    const waiting = [1, 2, 3, 4].map(() => locks.lock([hot, cold], { wait: '20s', fair: true }));
    const failed = Promise.all(waiting.map((call) => expect(call).rejects.toThrow(LockUnavailableError)));
    await until(async () => (await otherProcess.inspect(hot))?.waiters.length === waiting.length);
    await troubles['its master is dead']!();
    // They ask again every second or so.
    await failed;
    await holder.unlock();
    await otherProcess.withLock(hot, () => undefined, { wait: SHORT_WAIT_MS });
  }, 30_000);

  it('say what is wrong with a key also on a client that has not connected yet', async () => {
    const client = new Cluster([{ host: '127.0.0.1', port: cluster.masters[0]!.port }], { lazyConnect: true });
    const fresh = serviceOn(client);
    await expect(fresh.lock([hot, 'cart}x'])).rejects.toThrow(LockKeyError);
    await fresh.close();
    client.disconnect();
  });

  it('that wait keep their places when the client reads again, and again, who serves which slot', async () => {
    const send = client.sendCommand.bind(client);
    client.sendCommand = (...args) => {
      client.emit('refresh');
      return send(...args);
    };
    const order: string[] = [];
    const holder = await otherProcess.lock(cold);
    const first = locks.withLock([hot, cold], () => void order.push('first'), { wait: '20s' });
    await until(async () => (await locks.inspect(cold))?.waiters.length === 1);
    const third = serviceOn(cluster.client());
    const second = third.withLock(cold, () => void order.push('second'), { wait: '20s' });
    await until(async () => (await locks.inspect(cold))?.waiters.length === 2);
    await holder.unlock();
    await Promise.all([first, second]);
    expect(order).toEqual(['first', 'second']);
    await third.close();
  }, 30_000);
});
