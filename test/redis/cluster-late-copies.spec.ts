import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { once } from 'node:events';
import { Cluster } from 'ioredis';
import { slotOf } from '../../lib/redis/cluster/cluster-slot.js';
import { ALIVE_MS } from '../../lib/store/lock-store.js';
import { until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { keyAt, startCluster, type RedisCluster } from '../support/redis/redis-cluster.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';

describe('A command to a Redis Cluster whose first copy arrives late', () => {
  let cluster: RedisCluster;
  let proxies: TcpProxy[];
  /** Reaches each node through a proxy of its own. */
  let client: Cluster;
  let here: ClosableLockService;
  let there: ClosableLockService;
  /** In the order in which they are taken: they lie in slots of different masters. */
  const [first, second] = [keyAt(0), keyAt(1)].sort((x, y) => slotOf(`lock:${x}`) - slotOf(`lock:${y}`)) as [
    string,
    string,
  ];

  const waiters = (master: number, key: string, count: number) =>
    until(async () => (await cluster.masters[master]!.redis.zcard(`{lock:${key}}:queue`)) === count);

  beforeEach(async () => {
    cluster = await startCluster();
    const nodes = [...cluster.masters, ...cluster.replicas];
    proxies = await Promise.all(nodes.map(({ port }) => startProxy(port)));
    client = new Cluster(
      proxies.map(({ port }) => ({ host: '127.0.0.1', port })),
      {
        natMap: Object.fromEntries(
          nodes.map(({ port }, index) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: proxies[index]!.port }]),
        ),
        redisOptions: { enableReadyCheck: false },
      },
    );
    client.on('error', () => undefined);
    await once(client, 'ready');
    [here, there] = [client, cluster.client()].map((connection) =>
      lockService(redisStore({ connection }), { wait: 10_000, shutdownGrace: 0 }),
    ) as [ClosableLockService, ClosableLockService];
  }, 30_000);

  afterEach(async () => {
    await here.close();
    await there.close();
    client.disconnect();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await cluster.stop();
  });

  it('a late copy that gives up keys of a later slot does not take them from its caller', async () => {
    const inTheWay = await there.lock(second);
    const waiting = here.lock([first, second]);
    await waiters(1, second, 1);
    // It loses its key of the first slot to somebody else, so it has to leave the queue in the second.
    await there.forceUnlock(first);
    const instead = await there.lock(first);
    const proxy = proxies[1]!;
    proxy.holdRequests((chunk) => chunk.includes('\r\ncancel\r\n'));
    const keeping = () => proxy.wires.find(({ requests }) => requests.keepsBack);
    await until(() => keeping() !== undefined);
    const wire = keeping()!;
    proxy.heal();
    wire.loseClient();
    await waiters(1, second, 0);
    await waiters(0, first, 1);
    await inTheWay.unlock();
    await instead.unlock();
    const lock = await waiting;

    const monitor = await cluster.masters[1]!.redis.monitor();
    const arrived = new Promise<void>((resolve) =>
      monitor.on('monitor', (_time: string, args: string[]) => args.includes('cancel') && resolve()),
    );
    wire.requests.release();
    await arrived;
    monitor.disconnect();
    expect(await there.tryLock(second)).toBeNull();
    expect(lock.isHeld).toBe(true);
    expect(await lock.unlock()).toBe(true);
  }, 20_000);

  it('a late copy that shortens leases of earlier slots does nothing once its caller has all keys', async () => {
    const leaseLeft = () => cluster.masters[0]!.redis.pttl(`lock:${first}`);
    const inTheWay = await there.lock(second);
    const proxy = proxies[0]!;
    proxy.holdRequests((chunk) => chunk.includes('\r\nshorten\r\n'));
    const waiting = here.lock([first, second]);
    const keeping = () => proxy.wires.find(({ requests }) => requests.keepsBack);
    await until(() => keeping() !== undefined);
    const wire = keeping()!;
    proxy.heal();
    wire.loseClient();
    await until(async () => (await leaseLeft()) <= ALIVE_MS);
    await waiters(1, second, 1);
    await inTheWay.unlock();
    const lock = await waiting;

    const monitor = await cluster.masters[0]!.redis.monitor();
    const arrived = new Promise<void>((resolve) =>
      monitor.on('monitor', (_time: string, args: string[]) => args.includes('shorten') && resolve()),
    );
    wire.requests.release();
    await arrived;
    monitor.disconnect();
    expect(await leaseLeft()).toBeGreaterThan(lock.remaining());
    expect(lock.remaining()).toBeGreaterThan(ALIVE_MS);
    expect(await lock.unlock()).toBe(true);
  }, 20_000);
});
