import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import { Cluster, type ClusterOptions, type RedisOptions } from 'ioredis';
import { LockKeyError, LockUnavailableError, type Lock } from 'nest-redis-lock';
import { ClusterNames } from '../../lib/redis/cluster/cluster-names.js';
import { slotOf, SLOTS } from '../../lib/redis/cluster/cluster-slot.js';
import { ALIVE_MS } from '../../lib/store/lock-store.js';
import { TestChild } from '../support/processes/child-process.js';
import { aborted, deferred, turn, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { keyAt, startCluster, type RedisCluster } from '../support/redis/redis-cluster.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';

describe('A lock in a Redis Cluster', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let here: ClosableLockService;
  let there: ClosableLockService;
  /** Keys that lie in slots of different masters. */
  let a: string;
  let b: string;
  let c: string;

  const queued = (key: string, count: number) =>
    until(async () => (await client.zcard(`{lock:${key}}:queue`)) === count);
  const keysLeft = async () => {
    const keys = await Promise.all(cluster.masters.map(({ redis }) => redis.keys('*')));
    return keys.flat().filter((key) => !/^\{lock:\w+\}:fence$/.test(key));
  };

  /** Two of them as they are taken: against the order of their names. */
  const inOrder = () => [a, b].toSorted((x, y) => slotOf(`lock:${x}`) - slotOf(`lock:${y}`)) as [string, string];

  beforeAll(async () => {
    cluster = await startCluster();
    client = cluster.client();
    await once(client, 'ready');
    // Against the order of their names.
    [c, b, a] = [0, 1, 2].map((master) => keyAt(master)) as [string, string, string];
  }, 30_000);

  afterAll(() => cluster.stop());

  beforeEach(() => {
    const services = [cluster.client(), cluster.client()].map((connection) =>
      lockService(redisStore({ connection }), { wait: 10_000, shutdownGrace: 0 }),
    );
    [here, there] = services as [ClosableLockService, ClosableLockService];
  });

  afterEach(async () => {
    await here.close();
    await there.close();
    await until(async () => (await keysLeft()).length === 0);
  });

  describe('names', () => {
    it('the slot of a name is computed as the server does it', async () => {
      for (const name of [
        '123456789',
        'lock:a',
        '{lock:a}:queue',
        'foo{}{bar}',
        'foo{{bar}}zap',
        'foo{bar}{zap}',
        'é{ü}',
        '}{',
        '{a',
        '💥',
        '',
      ]) {
        expect([name, slotOf(name)]).toEqual([name, await cluster.masters[0]!.redis.cluster('KEYSLOT', name)]);
      }
    });

    it('each slot has a fence counter, and all names of a key lie in its slot', () => {
      for (const prefix of ['lock:', '', 'app:{x}:', '{}']) {
        const names = new ClusterNames(prefix);
        const notes = Array.from({ length: SLOTS }, (_, slot) => names.fenceIn(slot));
        expect(notes.every((note, slot) => slotOf(note) === slot)).toBe(true);
        expect(new Set(notes).size).toBe(SLOTS);
        expect(new ClusterNames(prefix).fenceIn(42)).toBe(notes[42]);
      }
    });

    it('a key whose names would lie in different slots is refused', async () => {
      for (const key of ['a}b', '{}{x}', 'a{}']) {
        const calls = [
          ...([{}, { mode: 'read' }, { permits: 2 }, { fair: true }] as const).flatMap((options) => [
            () => here.lock(key, options),
            () => here.lock([a, key], options),
          ]),
          ...[() => here.isLocked(key), () => here.inspect(key), () => here.forceUnlock(key)],
        ];
        // The first one leaves nothing behind that the next one would meet.
        for (const call of [...calls, ...calls]) await expect(call()).rejects.toBeInstanceOf(LockKeyError);
      }
      for (const key of ['{user:7}:cart', 'a{b', 'a{b}c{d}', 'ü']) await (await here.lock(key)).unlock();
    });
  });

  describe('on keys in several slots', () => {
    it('a lock on keys in several slots is acquired as a whole, or not at all', async () => {
      for (const held of [a, b, c]) {
        const lock = await there.lock(held);
        expect(await here.tryLock([a, b, c])).toBeNull();
        expect((await keysLeft()).sort()).toEqual([`lock:${held}`]);
        await lock.unlock();
      }
      const whole = await here.lock([a, b, c]);
      for (const key of [a, b, c]) expect(await there.tryLock(key)).toBeNull();
      expect(await whole.unlock()).toBe(true);
    });

    it('a call for more slots than it has time for, far away, says how many of them it had', async () => {
      const proxy = await startProxy(cluster.masters[0]!.port);
      const natMap = { [`127.0.0.1:${cluster.masters[0]!.port}`]: { host: '127.0.0.1', port: proxy.port } };
      const distant = new Cluster([{ host: '127.0.0.1', port: proxy.port }], { natMap });
      const locks = lockService(redisStore({ connection: distant, commandTimeout: 500 }), { shutdownGrace: 0 });
      const keys = Array.from({ length: 20 }, (_, nth) => keyAt(0, nth));
      await locks.withLock(keys, () => undefined);
      proxy.delay(25);
      const says = /, or raise "commandTimeout"\. [1-9] of the 20 slots of this call were taken by then, one after the/;
      await expect(locks.lock(keys)).rejects.toHaveProperty('detail', expect.stringMatching(says));
      await until(async () => (await keysLeft()).length === 0);
      await locks.close();
      distant.disconnect();
      await proxy.stop();
    });

    it('a waiter for several slots waits for one after the other, and keeps earlier ones only', async () => {
      const slots = [a, b, c].sort((x, y) => slotOf(`lock:${x}`) - slotOf(`lock:${y}`));
      const [first, second, third] = slots as [string, string, string];
      const inTheWay = await there.lock(second);
      const waiting = here.lock([a, b, c]);
      await queued(second, 1);
      expect(await there.tryLock(first)).toBeNull();
      await (await there.tryLock(third))!.unlock();
      await inTheWay.unlock();
      const lock = await waiting;
      expect(lock.isHeld).toBe(true);
      await lock.unlock();
    });

    it.each([{ mode: 'exclusive' }, { mode: 'read' }] as const)(
      'a waiter ($mode) keeps earlier slots only for as long as it counts as alive, from sign of life to sign of life',
      async ({ mode }) => {
        const [first, second] = inOrder();
        const leaseLeft = (key: string) => client.pttl(`lock:${key}`);
        const inTheWay = await there.lock(second);
        const waiting = here.lock([a, b], { lease: '30s', mode });
        await queued(second, 1);
        await until(async () => (await leaseLeft(first)) <= ALIVE_MS);
        let renewals = 0;
        for (let before = await leaseLeft(first); renewals < 2;) {
          const left = await leaseLeft(first);
          expect(left).toBeLessThanOrEqual(ALIVE_MS);
          if (left > before) renewals++;
          before = left;
        }
        expect(await there.tryLock(first)).toBeNull();
        await inTheWay.unlock();
        const lock = await waiting;
        for (const key of [first, second]) expect(await leaseLeft(key)).toBeGreaterThan(lock.remaining());
        expect(lock.remaining()).toBeGreaterThan(ALIVE_MS);
        await lock.unlock();
      },
    );

    it('a waiter that lost keys of earlier slots acquires them again, in their order', async () => {
      const [first, second] = inOrder();
      const inTheWay = await there.lock(second);
      const waiting = here.lock([a, b]);
      await queued(second, 1);
      await there.forceUnlock(first);
      const instead = await there.lock(first);
      await queued(first, 1);
      await queued(second, 0);
      await Promise.all([inTheWay.unlock(), instead.unlock()]);
      await (await waiting).unlock();
    });

    it('a waiter keeps callers of its process only from earlier slots, and from the one it waits for', async () => {
      const [first, second] = inOrder();
      const free = async (key: string) => (await here.lock(key, { wait: 0 })).unlock();
      for (const [held, others] of [
        [first, [second]],
        [second, []],
      ] as [string, string[]][]) {
        const inTheWay = await there.lock(held);
        const waiting = here.lock([a, b]);
        await queued(held, 1);
        for (const key of others) await free(key);
        for (const key of [a, b].filter((key) => !others.includes(key))) expect(await here.tryLock(key)).toBeNull();
        await inTheWay.unlock();
        await (await waiting).unlock();
      }
    });

    it('a waiter for keys in several slots that gives up leaves nothing behind', async () => {
      const inTheWay = await there.lock(b);
      await expect(here.lock([a, b, c], { wait: 50 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(await keysLeft()).toEqual([`lock:${b}`]);
      await inTheWay.unlock();
    });

    it('locks on several slots never deadlock, in whatever order they are named, nor let two inside', async () => {
      const inside = new Set<string>();
      const work = async ({ keys }: Lock) => {
        for (const key of keys) expect(inside.has(key)).toBe(false);
        for (const key of keys) inside.add(key);
        await turn();
        for (const key of keys) inside.delete(key);
      };
      const choices = [[a, b], [b, a], [c, a], [b, c], [a, b, c], [a], [b], [c]];
      await Promise.all(
        Array.from({ length: 64 }, (_, index) =>
          (index % 2 ? here : there).withLock(choices[index % choices.length]!, work, { fair: index % 3 === 0 }),
        ),
      );
    });

    it('a lock on several slots has a larger fence on each key than all earlier ones', async () => {
      await here.withLock(b, () => undefined);
      // The clock of one node seems to be ahead.
      await client.incrby(new ClusterNames('lock:').fenceIn(slotOf(`lock:${b}`)), 3_600_000_000);
      let last = 0;
      const grows = ({ fence }: Lock) => {
        expect(fence).toBeGreaterThan(last);
        last = fence;
      };
      await here.withLock(b, grows);
      await there.withLock([a, b, c], grows);
      await here.withLock(c, grows);
      await there.withLock([a, c], grows);
      await here.withLock(a, grows);
      await here.withLock([a, c], async (lock) => {
        await here.withLock([a, c], ({ fence }) => expect(fence).toBe(lock.fence));
      });
    });

    it('a lock on keys in several slots is renewed, shared and lost as a whole', async () => {
      const readers = await Promise.all([here, there].map((who) => who.lock([a, b], { mode: 'read', lease: 300 })));
      expect(await there.tryLock(a)).toBeNull();
      const writing = here.lock([a, b], { lease: 300 });
      await Promise.all(readers.map((reader) => reader.unlock()));
      const writer = await writing;
      await expect(there.lock(b, { wait: 700 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(writer.isHeld).toBe(true);
      const lost = once(writer.signal, 'abort');
      await there.forceUnlock(a);
      await lost;
      await writer.unlock();
    });

    it('a nested writer may enter inside the only reader', async () => {
      await here.withLock(
        [a, b],
        async (reader) => {
          await here.withLock([a, b], async (writer) => {
            expect(writer.fence).toBeGreaterThan(reader.fence);
            expect(await there.tryLock(a, { mode: 'read' })).toBeNull();
          });
          const other = there.lock([a, b], { mode: 'read' });
          expect((await other).isHeld).toBe(true);
          await expect(here.withLock([a, b], () => undefined)).rejects.toMatchObject({ code: 'LOCK_OPTIONS_INVALID' });
          await (await other).unlock();
        },
        { mode: 'read' },
      );
    });
  });

  it.each([
    { who: 'a waiter whose process is', processes: [1] },
    { who: 'many waiters whose process is', processes: [6] },
    { who: 'waiters of several processes that are', processes: [1, 1, 1] },
  ])(
    'a cluster passes over $who killed, within about 2 s',
    async ({ processes }) => {
      const lock = await here.lock(a, { fair: true });
      const children = processes.map(
        (callers) => new TestChild('wait-in-cluster.mjs', cluster.masters[0]!.port, a, callers),
      );
      const dead = processes.reduce((sum, callers) => sum + callers, 0);
      await queued(a, dead);
      const waiting = there.lock(a, { fair: true });
      await queued(a, dead + 1);
      await Promise.all(children.map((child) => child.kill()));
      const startedAt = performance.now();
      await lock.unlock();
      await (await waiting).unlock();
      expect(performance.now() - startedAt).toBeLessThan(3500);
    },
    20_000,
  );

  it('a call fails in time when one node is slow and another one hangs, and leaves nothing behind', async () => {
    const client = cluster.client();
    const service = lockService(redisStore({ connection: client, commandTimeout: 1000 }));
    await service.withLock([a, b, c], () => undefined);
    const [slow, ...others] = [a, b, c]
      .toSorted((x, y) => slotOf(`lock:${x}`) - slotOf(`lock:${y}`))
      .map((key) => cluster.masters[[a, b, c].indexOf(key)]!);
    const silent = others.at(-1)!;
    process.kill(silent.pid, 'SIGSTOP');
    const startedAt = performance.now();
    try {
      await slow!.redis.client('PAUSE', 700, 'ALL');
      await expect(service.tryLock([a, b, c])).rejects.toBeInstanceOf(LockUnavailableError);
      expect(performance.now() - startedAt).toBeLessThan(1350);
    } finally {
      process.kill(silent.pid, 'SIGCONT');
    }
    await (await there.lock([a, b, c], { wait: 5000 })).unlock();
    await service.close();
  }, 20_000);

  it('a key that the user has no right to any more costs no other lock of its slot', async () => {
    const onAll = (...rule: string[]) =>
      Promise.all(cluster.masters.map(({ redis }) => redis.acl('SETUSER', 'locks', ...rule)));
    await onAll('on', '>pw', '+@all', '&*', '~*');
    const { port } = cluster.masters[0]!;
    const limited = new Cluster([{ host: '127.0.0.1', port }], { redisOptions: { username: 'locks', password: 'pw' } });
    const service = lockService(redisStore({ connection: limited }), { shutdownGrace: 0 });
    const keys = ['{slot}:mine:1', '{slot}:theirs', '{slot}:mine:2'];
    const held = await Promise.all(keys.map((key) => service.lock(key, { lease: 900 })));
    await onAll('resetkeys', '~*{slot}:mine*', '~{lock:*', '~{}*');
    expect(await aborted(held[1]!.signal)).toMatchObject({ detail: expect.stringMatching(/NOPERM/) });
    expect(held.map((lock) => lock.isHeld)).toEqual([true, false, true]);
    await service.close();
    limited.disconnect();
    await Promise.all(cluster.masters.map(({ redis }) => redis.acl('DELUSER', 'locks')));
  });

  it('a cluster that evicts keys is reported also when the app lends a client that is ready already', async () => {
    const client = cluster.client();
    await once(client, 'ready');
    const limit = (bytes: number) =>
      Promise.all(
        client
          .nodes('all')
          .map((node) => node.config('SET', 'maxmemory', bytes, 'maxmemory-policy', 'allkeys-lru' as never)),
      );
    await limit(100_000_000);
    const told = deferred<string>();
    const store = redisStore({ connection: client }, { unfit: (_server, problem) => told.resolve(problem) });
    store.open!();
    expect(await told.promise).toContain('allkeys-lru');
    await store.close();
    await limit(0);
  });

  it('a call fails in time when no node can be reached', async () => {
    const away = new Cluster([{ host: '127.0.0.1', port: 1 }], { clusterRetryStrategy: () => 50 });
    away.on('error', () => undefined);
    const service = lockService(redisStore({ connection: away, commandTimeout: 300 }), { wait: 10_000 });
    const startedAt = performance.now();
    for (const options of [{}, { fair: true }, { wait: 0 }])
      await expect(service.lock([a, b], options)).rejects.toBeInstanceOf(LockUnavailableError);
    expect(performance.now() - startedAt).toBeLessThan(2000);
    await service.close();
    away.disconnect();
  });

  it.each(['quit', 'disconnect'] as const)(
    'a client that the app closes by %s leaves the locks to one of the library',
    async (how) => {
      const own = cluster.client();
      const orphaned = lockService(redisStore({ connection: own }), { shutdownGrace: 0 });
      const [first, second] = [await orphaned.lock(a, { lease: 3000 }), await orphaned.lock([b, c])];
      const ended = once(own, 'end');
      await own[how]();
      await ended;
      expect(await second.unlock()).toBe(true);
      const heldUntil = performance.now() + 3600;
      await until(() => performance.now() > heldUntil);
      expect(first.isHeld).toBe(true);
      await (await orphaned.lock([b, c])).unlock();
      expect(await there.tryLock(a)).toBeNull();
      await orphaned.close();
      await (await there.lock(a, { wait: 0 })).unlock();
    },
  );

  it.each(['quit', 'disconnect'] as const)(
    'a call that meets a client while the app closes it by %s goes out as soon as that has ended',
    async (how) => {
      const own = cluster.client();
      const orphaned = lockService(redisStore({ connection: own }), { shutdownGrace: 0 });
      const lock = await orphaned.lock(a);
      // No timer comes, so none tries again.
      jest.useFakeTimers({ doNotFake: ['Date', 'performance', 'nextTick', 'queueMicrotask', 'setImmediate'] });
      try {
        void own[how]();
        expect(own.status).toBe('disconnecting');
        let isReleased = false;
        void lock.unlock().then((ours) => (isReleased = ours));
        await until(() => isReleased);
      } finally {
        jest.useRealTimers();
      }
      await orphaned.close();
    },
  );

  it('a client that the app connects again when it has ended keeps the locks, also those of calls that met its end', async () => {
    const own = cluster.client();
    const service = lockService(redisStore({ connection: own }), { shutdownGrace: 0 });
    const lock = await service.lock(a);
    const another = jest.spyOn(own, 'duplicate');
    const connected = once(own, 'end').then(() => own.connect());
    own.disconnect();
    expect(await lock.unlock()).toBe(true);
    await connected;
    await service.withLock(a, () => undefined);
    expect(another).not.toHaveBeenCalled();
    await service.close();
    own.disconnect();
  });

  it('a client that the app has closed before leaves the locks to one of the library', async () => {
    const closed = cluster.client();
    await once(closed, 'ready');
    closed.disconnect();
    await once(closed, 'end');
    // ioredis overwrites the status "end".
    await until(() => closed.status === 'close');
    const locks = lockService(redisStore({ connection: closed }), { shutdownGrace: 0 });
    expect(await locks.withLock('a', () => 'done')).toBe('done');
    await locks.close();
  });

  it('a client that gave up in an outage leaves the locks to one that looks for the nodes by the names of the app', async () => {
    const first = await startCluster();
    const proxy = await startProxy(first.masters[0]!.port);
    // It stands for a name whose address changes.
    const named = new Cluster([{ host: '127.0.0.1', port: proxy.port }], { clusterRetryStrategy: () => null });
    named.on('error', () => undefined);
    const locks = lockService(redisStore({ connection: named }), { shutdownGrace: 0 });
    expect(await locks.withLock('a', () => 'done')).toBe('done');
    const ended = once(named, 'end');
    await first.stop();
    await ended;
    await expect(locks.withLock('a', () => 'done')).rejects.toBeInstanceOf(LockUnavailableError);
    proxy.leadTo(cluster.masters[0]!.port);
    const isBack = () => locks.withLock('a', () => true).catch(() => false);
    await until(isBack, 10_000);
    await locks.close();
    await proxy.stop();
  }, 30_000);

  it('a client that finds no node of those that the app has named says so', async () => {
    const dnsLookup: ClusterOptions['dnsLookup'] = (_name, callback) => callback(new Error('ENOTFOUND'), '', 4);
    const lost = new Cluster([{ host: 'locks.invalid', port: 1 }], { dnsLookup });
    const locks = lockService(redisStore({ connection: lost }), { shutdownGrace: 0 });
    await expect(locks.lock('a')).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/no node answers\. Look at the hosts and ports/),
    );
    await locks.close();
    lost.disconnect();
  });

  it('a client that the app closes while a node hangs leaves the locks of other nodes to one of the library', async () => {
    const own = cluster.client();
    const orphaned = lockService(redisStore({ connection: own }), { shutdownGrace: 0 });
    const lock = await orphaned.lock(b);
    await orphaned.withLock(c, () => undefined);
    const { pid } = cluster.masters[0]!;
    process.kill(pid, 'SIGSTOP');
    try {
      const closed = own.quit().catch(() => undefined);
      expect(await lock.unlock()).toBe(true);
      expect(own.status).toBe('disconnecting');
      await (await there.lock(b, { wait: 0 })).unlock();
      process.kill(pid, 'SIGCONT');
      await closed;
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await orphaned.close();
  });

  it('a client that the app closes leaves its locks to one of the library, though the node that it named is gone', async () => {
    const proxy = await startProxy(cluster.masters[0]!.port);
    const own = new Cluster([{ host: '127.0.0.1', port: proxy.port }]);
    const orphaned = lockService(redisStore({ connection: own }), { shutdownGrace: 0 });
    const lock = await orphaned.lock(b);
    proxy.refuse();
    const ended = once(own, 'end');
    own.disconnect();
    await ended;
    expect(await lock.unlock()).toBe(true);
    await orphaned.close();
    await proxy.stop();
  });

  it('a client that waits for a node before it is ready is told to have a limit, with which it asks another node', async () => {
    const nodes = [...cluster.masters, ...cluster.replicas];
    const proxies = await Promise.all(nodes.map(({ port }) => startProxy(port)));
    const natMap = Object.fromEntries(
      nodes.map(({ port }, at) => [`127.0.0.1:${port}`, { host: '127.0.0.1', port: proxies[at]!.port }]),
    );
    const serviceWith = (redisOptions: RedisOptions) => {
      const client = new Cluster([{ host: '127.0.0.1', port: proxies[0]!.port }], { natMap, redisOptions });
      client.on('error', () => undefined);
      const service = lockService(redisStore({ connection: client, commandTimeout: 500 }), { shutdownGrace: 0 });
      return { client, service };
    };
    const asksHowItIs = (chunk: Buffer) => /cluster\r\n\$4\r\ninfo/i.test(chunk.toString());
    for (const proxy of proxies) proxy.dropRequests(asksHowItIs);
    const waiting = serviceWith({});
    await expect(waiting.service.lock(a)).rejects.toMatchObject({
      detail: expect.stringContaining('give the client "redisOptions: { commandTimeout: 1000 }"'),
    });
    for (const proxy of proxies.slice(1)) proxy.heal();
    const limited = serviceWith({ commandTimeout: 100 });
    await until(() => limited.service.withLock(a, () => true).catch(() => false));
    for (const { client, service } of [waiting, limited]) {
      await service.close();
      client.disconnect();
    }
    await Promise.all(proxies.map((proxy) => proxy.stop()));
  });

  it('a client that connects only when it is used is left to the app until the first lock', async () => {
    const lazy = new Cluster([{ host: '127.0.0.1', port: cluster.replicas[0]!.port }], { lazyConnect: true });
    const store = redisStore({ connection: lazy });
    store.open!();
    await there.isLocked(a);
    expect(lazy.status).toBe('wait');
    await lazy.connect();
    await store.close();
    lazy.disconnect();
  });

  it('a client that connects only when it is used gets a lock as soon as the cluster can be reached', async () => {
    const lazy = new Cluster([{ host: '127.0.0.1', port: cluster.replicas[0]!.port }], { lazyConnect: true });
    const service = lockService(redisStore({ connection: lazy, commandTimeout: '5s' }), { shutdownGrace: 0 });
    const lock = await service.lock([a, b]);
    const next = here.lock(b);
    await queued(b, 1);
    await lock.unlock();
    await (await next).unlock();
    await service.close();
    lazy.disconnect();
  });

  it("a store on the app's cluster client does not close that client when it ends", async () => {
    const own = cluster.client();
    const service = lockService(redisStore({ connection: own }));
    await (await service.lock(a)).unlock();
    const before = own.listenerCount('refresh');
    await service.close();
    expect(own.listenerCount('refresh')).toBe(before - 1);
    expect(await own.ping()).toBe('PONG');
  });
});
