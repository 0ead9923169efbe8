import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { Cluster, Redis } from 'ioredis';
import { LockUnavailableError } from 'nest-redis-lock';
import { SILENT } from '../../lib/redis/connection/outage-log.js';
import { borrowedClient } from '../../lib/redis/connection/redis-client.js';
import { RedisConnection } from '../../lib/redis/connection/redis-connection.js';
import { SecondOpinion } from '../../lib/redis/connection/second-opinion.js';
import { collectGarbage } from '../support/collect-garbage.js';
import { until } from '../support/deferred.js';
import { freePort } from '../support/free-port.mjs';
import { keyAt, startClusterWithoutFailovers, type RedisCluster } from '../support/redis/redis-cluster.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

const COMMAND_TIMEOUT_MS = 300;
const LEASE_MS = 5000;

/** How long everything takes each way, to nodes that are far away. */
const FAR_MS = 45;

describe("A connection of the app's client that has died without a word", () => {
  let server: RedisServer;
  let redis: Redis;
  let proxy: TcpProxy;
  let client: Redis;
  let locks: ClosableLockService;
  let deserted: string[];

  withRedis((one) => ({ server, redis } = one));

  const serviceOn = (connection: Redis | Cluster): ClosableLockService =>
    lockService(
      redisStore({ connection, commandTimeout: COMMAND_TIMEOUT_MS }, { deserted: (name) => deserted.push(name) }),
      { lease: LEASE_MS, shutdownGrace: 0 },
    );

  beforeEach(async () => {
    deserted = [];
    proxy = await startProxy(Number(new URL(server.url).port));
    client = new Redis(proxy.url);
    await once(client, 'ready');
    locks = serviceOn(client);
    await locks.withLock('warm up', () => undefined);
  });

  afterEach(async () => {
    await locks.close();
    client.disconnect();
    await proxy.stop();
  });

  /** As a firewall does that has forgotten the connection: it drops all packets. */
  const forgetConnection = () => {
    const [wire] = proxy.wires;
    wire!.requests.drop();
    wire!.replies.drop();
  };

  it('locks go on over another one, and those that are held are kept', async () => {
    const held = await locks.lock('held');
    forgetConnection();
    await expect(locks.lock('a')).rejects.toThrow(LockUnavailableError);
    await until(() => locks.withLock('a', () => true).catch(() => false));
    await held.extend();
    expect(await held.unlock()).toBe(true);
    expect(deserted).toEqual([`127.0.0.1:${proxy.port}`]);
    expect(client.status).toBe('ready');
  });

  it('the same where the client reads numbers as texts', async () => {
    await locks.close();
    client.disconnect();
    await proxy.stop();
    proxy = await startProxy(Number(new URL(server.url).port));
    client = new Redis(proxy.url, { stringNumbers: true });
    await once(client, 'ready');
    locks = serviceOn(client);
    await locks.withLock('warm up', () => undefined);
    forgetConnection();
    await expect(locks.lock('a')).rejects.toThrow(LockUnavailableError);
    await until(() => locks.withLock('a', () => true).catch(() => false));
    expect(deserted).toEqual([`127.0.0.1:${proxy.port}`]);
  });

  it('the server is asked again until the new connection can be made, as when it is far away', async () => {
    proxy.leadTo(await freePort());
    const before = proxy.wires.length;
    const make = () => new Redis(proxy.url, { lazyConnect: true, retryStrategy: () => 20 });
    const asked = new SecondOpinion<Redis>(COMMAND_TIMEOUT_MS).ask(client, make, (further) => further);
    await until(() => proxy.wires.length > before + 1);
    proxy.leadTo(Number(new URL(server.url).port));
    const further = await asked;
    expect(further?.status).toBe('ready');
    further!.disconnect();
  });

  it('a client that lets go of its connection by itself has not died', async () => {
    forgetConnection();
    const make = () => new Redis(server.url, { lazyConnect: true });
    const asked = new SecondOpinion<Redis>(COMMAND_TIMEOUT_MS).ask(client, make, (further) => further);
    client.disconnect();
    expect(await asked).toBeUndefined();
  });

  it('calls in flight over it fail at once when locks go on over another one', async () => {
    const patient = lockService(redisStore({ connection: client, commandTimeout: 3000 }), { shutdownGrace: 0 });
    await patient.withLock('warm up', () => undefined);
    forgetConnection();
    const first = patient.lock('a').catch((error: unknown) => error);
    await sleep(2000);
    await expect(patient.lock('b')).rejects.toHaveProperty(
      'detail',
      expect.stringContaining('the connection is silent'),
    );
    expect(await first).toBeInstanceOf(LockUnavailableError);
    await patient.close();
  });

  it('the same when a command of the app blocks it', async () => {
    const blocked = client.blpop('nothing', 0).catch(() => undefined);
    await expect(locks.lock('a')).rejects.toThrow(LockUnavailableError);
    await until(() => locks.withLock('a', () => true).catch(() => false));
    await redis.rpush('nothing', 'something');
    await blocked;
    // What the client had sent behind that command has acquired the key.
    await until(() => locks.withLock('a', () => true, { wait: 0 }).catch(() => false));
  });

  it('a server that hangs is not taken for one', async () => {
    process.kill(server.pid, 'SIGSTOP');
    try {
      for (let call = 0; call < 3; call++) await expect(locks.lock(`${call}`)).rejects.toThrow(LockUnavailableError);
    } finally {
      process.kill(server.pid, 'SIGCONT');
    }
    await until(() => locks.withLock('a', () => true).catch(() => false));
    await until(async () => !/lib-name=ioredis.*cmd=NULL/.test(String(await redis.client('LIST'))));
    expect(deserted).toEqual([]);
  });

  it('a pause for writes is not taken for one', async () => {
    await redis.call('CLIENT', 'PAUSE', '1500', 'WRITE');
    const says = /did not reply within 300 ms\. Look at its load and the network, or raise "commandTimeout"\.$/;
    await expect(locks.lock('first')).rejects.toHaveProperty('detail', expect.stringMatching(says));
    for (let call = 0; call < 3; call++) await expect(locks.lock(`${call}`)).rejects.toThrow(LockUnavailableError);
    await redis.client('UNPAUSE');
    await until(() => locks.withLock('a', () => true).catch(() => false));
    expect(deserted).toEqual([]);
  });

  it('when it comes to life, what was sent over it long ago keeps no key from others', async () => {
    const [wire] = proxy.wires;
    wire!.requests.hold();
    await expect(locks.lock('a', { lease: 200, watchdog: false })).rejects.toThrow(LockUnavailableError);
    await until(() => locks.withLock('a', () => true).catch(() => false));
    wire!.requests.release();
    await until(() => locks.withLock('a', () => true, { wait: 0 }).catch(() => false));
  });

  it('a release that gets no reply after the end of the app makes no new connection', async () => {
    const connection = new RedisConnection(borrowedClient(client), COMMAND_TIMEOUT_MS, SILENT, {
      ready: () => undefined,
      isSlow: () => undefined,
    });
    connection.close();
    forgetConnection();
    const { length } = proxy.wires;
    // The second one takes as long as a new connection would have, and longer.
    for (let time = 0; time < 2; time++)
      await expect(connection.command('PING')).rejects.toBeInstanceOf(LockUnavailableError);
    expect(proxy.wires).toHaveLength(length);
  });

  it('the end of the app closes what asks the server meanwhile', async () => {
    proxy.dropReplies();
    await expect(locks.lock('a')).rejects.toThrow(LockUnavailableError);
    const ours = () => proxy.wires.filter(({ isOpen }) => isOpen).length;
    await until(() => ours() > 2);
    await locks.close();
    client.disconnect();
    await until(() => ours() === 0);
  });
});

describe("A connection of the app's Cluster client that has died without a word", () => {
  const PASSWORD = 'between us';
  const keys = [0, 1, 2].map((master) => keyAt(master)) as [string, string, string];
  let cluster: RedisCluster;
  let proxies: TcpProxy[];
  let client: Cluster;
  let locks: ClosableLockService;
  let deserted: string[];

  beforeEach(async () => {
    deserted = [];
    cluster = await startClusterWithoutFailovers();
    const nodes = [...cluster.masters, ...cluster.replicas];
    await Promise.all(nodes.map(({ redis }) => redis.config('SET', 'masterauth', PASSWORD, 'requirepass', PASSWORD)));
    proxies = await Promise.all(nodes.map(({ port }) => startProxy(port)));
    const places = proxies.map(({ port }) => ({ host: '127.0.0.1', port }));
    const natMap = Object.fromEntries(nodes.map(({ port }, index) => [`127.0.0.1:${port}`, places[index]!]));
    // Only the nodes have the password.
    client = new Cluster(
      places.slice(0, 3).map((place) => ({ ...place, password: PASSWORD })),
      { natMap },
    );
    await once(client, 'ready');
    locks = lockService(
      redisStore(
        { connection: client, commandTimeout: COMMAND_TIMEOUT_MS },
        { deserted: (name) => deserted.push(name) },
      ),
      { lease: LEASE_MS, shutdownGrace: 0 },
    );
  }, 30_000);

  afterEach(async () => {
    await locks.close();
    client.disconnect();
    await Promise.all(proxies.map((proxy) => proxy.stop()));
    await cluster.stop();
  });

  const forgetConnectionsTo = (master: number) => {
    for (const { subscribes, requests, replies } of proxies[master]!.wires) {
      if (subscribes) continue;
      requests.drop();
      replies.drop();
    }
  };

  const works = (master: number) => until(() => locks.withLock(keyAt(master, 1), () => true).catch(() => false));

  it('locks of all nodes go on over other ones, as often as that happens', async () => {
    const held = await Promise.all(keys.map((key) => locks.lock(key)));
    for (let round = 0; round < 2; round++) {
      forgetConnectionsTo(0);
      await expect(locks.lock(keyAt(0, 1))).rejects.toThrow(LockUnavailableError);
      await works(0);
      await Promise.all(held.map((lock) => lock.extend()));
    }
    expect(await Promise.all(held.map((lock) => lock.unlock()))).toEqual([true, true, true]);
    expect(deserted).toEqual([`127.0.0.1:${proxies[0]!.port}`]);
    expect(client.status).toBe('ready');
  }, 60_000);

  it('a client whose place another one takes is garbage', async () => {
    await works(0);
    const duplicate: (this: Cluster, ...args: Parameters<Cluster['duplicate']>) => Cluster = Reflect.get(
      Cluster.prototype,
      'duplicate',
    );
    const made: WeakRef<Cluster>[] = [];
    // Not a mock of Jest: that would keep all results.
    Cluster.prototype.duplicate = function (...args) {
      const own = duplicate.apply(this, args);
      made.push(new WeakRef(own));
      return own;
    };
    try {
      for (let round = 0; round < 4; round++) {
        forgetConnectionsTo(0);
        await works(0);
      }
    } finally {
      Cluster.prototype.duplicate = duplicate;
    }
    expect(made.length).toBeGreaterThan(3);
    // The errors of the calls that the app's client still has in its queue know the first one.
    await until(() => {
      collectGarbage();
      return made.filter((own) => own.deref()).length <= 2;
    });
  }, 60_000);

  it('one takes its place, also when several searches for processes run at that time', async () => {
    await Promise.all(keys.map((key) => locks.withLock(key, () => undefined)));
    await locks.list();
    const made = jest.spyOn(Cluster.prototype, 'duplicate');
    forgetConnectionsTo(0);
    const lists: Promise<unknown>[] = [];
    await until(() => {
      lists.push(locks.list());
      return deserted.length > 0;
    });
    await Promise.all(lists);
    await works(0);
    expect(made).toHaveBeenCalledTimes(1);
    made.mockRestore();
  }, 60_000);

  it('the same when the nodes are far away', async () => {
    const [held] = await Promise.all(keys.map((key) => locks.lock(key)));
    for (const proxy of proxies) proxy.delay(FAR_MS);
    forgetConnectionsTo(0);
    await expect(locks.lock(keyAt(0, 1))).rejects.toThrow(LockUnavailableError);
    await works(0);
    await until(() =>
      held!.extend().then(
        () => true,
        () => false,
      ),
    );
    expect(deserted).toHaveLength(1);
  }, 60_000);

  it('the same while another node hangs', async () => {
    await Promise.all(keys.map((key) => locks.withLock(key, () => undefined)));
    process.kill(cluster.masters[0]!.pid, 'SIGSTOP');
    try {
      await expect(locks.lock(keys[0])).rejects.toThrow(LockUnavailableError);
      forgetConnectionsTo(1);
      await expect(locks.lock(keys[1])).rejects.toThrow(LockUnavailableError);
      await works(1);
      await works(2);
    } finally {
      process.kill(cluster.masters[0]!.pid, 'SIGCONT');
    }
    await works(0);
  }, 60_000);
});
