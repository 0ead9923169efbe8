import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { once } from 'node:events';
import type { Redis } from 'ioredis';
import { LockTimeoutError, LockUnavailableError, type Lock } from 'nest-redis-lock';
import { aborted, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { slotOf } from '../../lib/redis/cluster/cluster-slot.js';
import { keyAt, masterAt, startCluster, type ClusterNode, type RedisCluster } from '../support/redis/redis-cluster.js';
import { SlotMove } from '../support/redis/slot-move.js';

const [a, b, c] = [0, 1, 2].map((master) => keyAt(master)) as [string, string, string];

describe('When the nodes of a Redis Cluster change', () => {
  let cluster: RedisCluster;
  let here: ClosableLockService;
  let there: ClosableLockService;

  beforeEach(async () => {
    cluster = await startCluster();
    const clients = [cluster.client(), cluster.client()];
    await Promise.all(clients.map((client) => once(client, 'ready')));
    [here, there] = clients.map((connection) =>
      lockService(redisStore({ connection }), { wait: 10_000, shutdownGrace: 0 }),
    ) as [ClosableLockService, ClosableLockService];
  }, 30_000);

  afterEach(async () => {
    await here.close();
    await there.close();
    await cluster.stop();
  });

  const master = (index: number) => cluster.masters[index]!;
  const replica = (index: number) => cluster.replicas[index]!;
  const queued = (node: ClusterNode, key: string) =>
    until(async () => (await node.redis.zcard(`{lock:${key}}:queue`)) === 1);

  /** Makes the replica of a master the master of its slots, without asking anybody. */
  async function takeOver(index: number): Promise<void> {
    await replica(index).redis.cluster('FAILOVER', 'TAKEOVER');
    await until(async () => (await replica(index).redis.info('replication')).includes('role:master'));
  }

  /** Asks for as long as the cluster can't give an answer. */
  async function lockInTheEnd(who: ClosableLockService, key: string): Promise<Lock> {
    for (;;) {
      try {
        return await who.lock(key);
      } catch (error) {
        // The master that died may have held it; its lease ends.
        if (!(error instanceof LockTimeoutError)) expect(error).toBeInstanceOf(LockUnavailableError);
      }
    }
  }

  it('after a failover, locks that the new master has stay, the others are lost soon, and fences grow', async () => {
    const [lost, known] = [await here.lock(a, { lease: 1500 }), await here.lock(keyAt(0, 1), { lease: 1500 })];
    const [lostLater, elsewhere] = [
      await here.lock(keyAt(0, 2), { lease: '10m' }),
      await there.lock(b, { lease: 1500 }),
    ];
    await until(async () => (await replica(0).redis.dbsize()) === 6);
    await takeOver(0);
    await replica(0).redis.del(`lock:${a}`);
    await replica(0).redis.del(`lock:${lostLater.key}`);
    for (const lock of [lost, lostLater])
      expect(await aborted(lock.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
    const next = await lockInTheEnd(there, a);
    expect(next.fence).toBeGreaterThan(lost.fence);
    expect([known.isHeld, elsewhere.isHeld]).toEqual([true, true]);
    for (const lock of [known, elsewhere, next]) expect(await lock.unlock()).toBe(true);
  }, 20_000);

  it('fences grow also when the new master does not have the last of them', async () => {
    const fences: number[] = [];
    // The replica may miss that they were released.
    const brief = { lease: 1000 };
    const lock = await here.lock(a, brief);
    await until(async () => (await replica(0).redis.dbsize()) === 2);
    process.kill(replica(0).pid, 'SIGSTOP');
    await lock.unlock();
    for (let times = 0; times < 20; times++) fences.push(await here.withLock(a, ({ fence }) => fence, brief));
    process.kill(master(0).pid, 'SIGKILL');
    process.kill(replica(0).pid, 'SIGCONT');
    await takeOver(0);
    const [noted] = await replica(0).redis.keys('*:fence');
    await replica(0).redis.set(noted!, lock.fence);
    const next = await lockInTheEnd(there, a);
    expect(next.fence).toBeGreaterThan(fences.at(-1)!);
    await next.unlock();
  }, 20_000);

  it('fences for keys of several masters grow over a failover, also when a new master lags behind', async () => {
    // What the clock of one that is an hour ahead writes.
    const ahead = (Date.now() + 3_600_000) * 1000;
    await here.withLock(b, () => undefined);
    const [note] = await master(1).redis.keys('*:fence');
    await master(1).redis.set(note!, ahead);
    const { fence } = await here.lock([a, b], { lease: 1000, watchdog: false });
    expect(fence).toBeGreaterThan(ahead);
    await takeOver(0);
    await until(async () => (await replica(0).redis.keys('*:fence')).length === 1);
    await replica(0).redis.flushall();
    const next = await lockInTheEnd(here, a);
    expect(next.fence).toBeGreaterThan(fence);
    await next.unlock();
  }, 20_000);

  it('a master that falls silent fails calls for its keys only until its replica has taken over', async () => {
    const elsewhere = await there.lock(b, { lease: 900 });
    const { fence } = await here.lock(a, { lease: 900, watchdog: false });
    process.kill(master(0).pid, 'SIGSTOP');
    try {
      await expect(here.lock(a)).rejects.toBeInstanceOf(LockUnavailableError);
      await takeOver(0);
      for (const who of [here, there]) {
        const next = await lockInTheEnd(who, a);
        expect(next.fence).toBeGreaterThan(fence);
        await next.unlock();
      }
      expect([elsewhere.signal.reason, await elsewhere.unlock()]).toEqual([undefined, true]);
    } finally {
      process.kill(master(0).pid, 'SIGCONT');
    }
  }, 20_000);

  it('a master that dies fails only calls for its own keys, and they continue with the next master', async () => {
    const [held, whole] = [
      await here.lock(b, { lease: 900 }),
      await here.lock([keyAt(1, 1), keyAt(2, 1)], { lease: 900 }),
    ];
    // The same process renews all of them.
    const lost = await here.lock(a, { lease: 900 });
    const diedAt = performance.now();
    process.kill(master(0).pid, 'SIGKILL');
    const failing = here.lock(keyAt(0, 1)).then(
      () => undefined,
      (error: unknown) => error,
    );
    for (let times = 0; times < 20; times++) await there.withLock(c, () => undefined);
    expect(await failing).toBeInstanceOf(LockUnavailableError);
    expect(await aborted(lost.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    expect(performance.now() - diedAt).toBeLessThan(3000);
    expect([held.isHeld, whole.isHeld]).toEqual([true, true]);
    await expect(here.lock([keyAt(0, 2), keyAt(1, 2), keyAt(2, 2)])).rejects.toBeInstanceOf(LockUnavailableError);
    await takeOver(0);
    const next = await lockInTheEnd(there, a);
    expect(next.fence).toBeGreaterThan(lost.fence);
    for (const lock of [held, whole, next]) expect(await lock.unlock()).toBe(true);
    // What the failed call had taken of several keys has been given back.
    const again = await lockInTheEnd(here, keyAt(1, 2));
    await again.unlock();
  }, 30_000);

  describe('a slot that is moved', () => {
    let move: SlotMove;
    beforeEach(() => void (move = new SlotMove(cluster, a, 0, 1)));

    it('a slot that is moved takes a held lock along, which is renewed and given to nobody else', async () => {
      const lock = await here.lock(a, { lease: 600 });
      await move.begin();
      await move.take(`lock:${a}`);
      const heldUntil = performance.now() + 1500;
      while (performance.now() < heldUntil) {
        const other = await there
          .tryLock(a)
          .catch((error: unknown) => expect(error).toBeInstanceOf(LockUnavailableError));
        expect(other ?? null).toBeNull();
      }
      expect(lock.isHeld).toBe(true);
      await move.finish();
      expect(await there.tryLock(a)).toBeNull();
      expect(await lock.unlock()).toBe(true);
      const next = await lockInTheEnd(there, a);
      expect(next.fence).toBeGreaterThan(lock.fence);
      await next.unlock();
    }, 20_000);

    it('a slot that is moved takes the queue along: the waiter is next, with a larger fence', async () => {
      const lock = await here.lock(a, { lease: 600 });
      const waiting = there.lock(a);
      await queued(master(0), a);
      await move.begin();
      await move.finish();
      await queued(master(1), a);
      expect(await lock.unlock()).toBe(true);
      const next = await waiting;
      expect(next.fence).toBeGreaterThan(lock.fence);
      expect(await here.tryLock(a)).toBeNull();
      await next.unlock();
    }, 20_000);

    it.each([
      { what: 'all locks in it', keys: Array.from({ length: 10 }, (_, number) => `{${a}}${number}`), options: {} },
      { what: 'a lock on several keys', keys: [[`{${a}}1`, `{${a}}2`, b]], options: {} },
      { what: 'readers', keys: [`{${a}}1`, `{${a}}1`, `{${a}}2`], options: { mode: 'read' } },
      { what: 'permits', keys: [`{${a}}1`, `{${a}}1`], options: { permits: 2 } },
    ] as const)(
      'a slot that is moved does not lose $what, wherever each key is',
      async ({ keys, options }) => {
        const [lease, from] = [1800, masterAt(slotOf(a))];
        const move = new SlotMove(cluster, `{${a}}`, from, (from + 1) % 3);
        const locks = await Promise.all([
          here.lock(`{${a}}beside`, { lease }),
          ...keys.map((key) => here.lock(key as string | string[], { ...options, lease })),
        ]);
        await move.begin();
        for (const name of await move.rest()) {
          if (name.endsWith(':holders')) continue;
          await move.take(name);
          // Renewals meet each of these states.
          await sleep(60);
        }
        // Both of each in one place again, and the slot is still moving: renewals must keep the locks meanwhile.
        for (const name of await move.rest()) await move.take(name);
        await sleep(2 * lease);
        await move.finish();
        expect(locks.map(({ isHeld }) => isHeld)).toEqual(locks.map(() => true));
        for (const lock of locks) expect(await lock.unlock()).toBe(true);
      },
      20_000,
    );

    it('a slot that is moved does not lose readers whose set of holders has moved before', async () => {
      const reader = await here.lock(a, { mode: 'read', lease: 600 });
      await move.begin();
      await move.take(`{lock:${a}}:holders`);
      // Its renewals fail for this long, as nobody knows where the rest of it is.
      await sleep(250);
      await move.finish();
      await expect(there.lock(a, { wait: 1200 })).rejects.toMatchObject({ code: 'LOCK_TIMEOUT' });
      expect(reader.isHeld).toBe(true);
      await reader.unlock();
    }, 20_000);

    it.each([
      { who: 'a writer beside a reader', holds: { mode: 'read' }, comes: {} },
      { who: 'one permit too many', holds: { permits: 2 }, comes: { permits: 2 } },
    ] as const)(
      'a slot that is moved does not let in $who, while who has it is not there yet',
      async ({ holds, comes }) => {
        const holders = [await here.lock(a, holds), ...('permits' in holds ? [await here.lock(a, holds)] : [])];
        const waiting = there.lock(a, comes);
        await queued(master(0), a);
        await move.begin();
        const left = [`{lock:${a}}:holders`, `{lock:${a}}:alive`];
        for (const name of (await move.rest()).filter((name) => !left.includes(name))) await move.take(name);
        const other = await here
          .tryLock(a, comes)
          .catch((error: unknown) => expect(error).toBeInstanceOf(LockUnavailableError));
        expect(other ?? null).toBeNull();
        // Nothing was written beside what was still to come.
        await move.finish();
        expect(holders.map(({ isHeld }) => isHeld)).toEqual(holders.map(() => true));
        for (const holder of holders) expect(await holder.unlock()).toBe(true);
        await (await waiting).unlock();
      },
      20_000,
    );
  });

  it('a subscription whose node dies misses messages but no turns, and moves to another node', async () => {
    const subscriptions = async (index: number) =>
      String(await master(index).redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).split('name=nest-redis-lock').length -
      1;
    const countIn = async (indexes: readonly number[]) =>
      (await Promise.all(indexes.map(subscriptions))).reduce((sum, count) => sum + count, 0);
    // Both are subscribed then.
    await Promise.all([here, there].map((who) => who.withLock(b, () => undefined, { fair: true })));
    await until(async () => (await countIn([0, 1, 2])) === 2);
    const dying = (await subscriptions(0)) > 0 ? 0 : 1;
    const [living, key] = [[0, 1, 2].filter((index) => index !== dying), keyAt(2, 1)];

    const lock = await here.lock(key);
    const waiting = there.lock(key);
    await queued(master(2), key);
    const diedAt = performance.now();
    process.kill(master(dying).pid, 'SIGKILL');
    await lock.unlock();
    await (await waiting).unlock();
    expect(performance.now() - diedAt).toBeLessThan(4000);

    await until(async () => (await countIn(living)) === 2);
    const took: number[] = [];
    for (let times = 0; times < 5; times++) {
      const [holder, waiter] = times % 2 ? [here, there] : [there, here];
      const held = await holder.lock(key);
      const next = waiter.lock(key);
      await queued(master(2), key);
      const startedAt = performance.now();
      await held.unlock();
      await (await next).unlock();
      took.push(performance.now() - startedAt);
    }
    // By asking now and then, it would take most of a second each.
    expect(took.sort((x, y) => x - y)[2]).toBeLessThan(400);
  }, 20_000);

  it('a subscription whose node leaves the cluster, but goes on, moves to another node', async () => {
    const nodes = [...cluster.masters, ...cluster.replicas];
    const subscriptions = async (which: readonly ClusterNode[]) => {
      const lists = await Promise.all(which.map(({ redis }) => redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')));
      return String(lists).split('name=nest-redis-lock').length - 1;
    };
    await Promise.all([here, there].map((who) => who.withLock(b, () => undefined, { fair: true })));
    await until(async () => (await subscriptions(nodes)) === 2);
    const leaving = (await subscriptions([master(0)])) > 0 ? 0 : 1;
    const others = nodes.filter((node) => node !== master(leaving));
    await takeOver(leaving);
    await until(async () => (await master(leaving).redis.info('replication')).includes('role:slave'));
    for (const { redis } of others) await redis.cluster('FORGET', master(leaving).id);
    await master(leaving).redis.cluster('RESET', 'HARD');
    // Each hears of the next master when it asks for a key of it.
    for (const who of [here, there]) await (await lockInTheEnd(who, keyAt(leaving))).unlock();
    await until(async () => (await subscriptions(others)) === 2, 15_000);
  }, 40_000);

  it('a subscription whose node leaves the cluster, but goes on, moves though messages go over that node, too', async () => {
    const nodes = [...cluster.masters, ...cluster.replicas];
    const channelsOf = async (some: readonly ClusterNode[]) =>
      (await Promise.all(some.map(({ redis }) => redis.pubsub('CHANNELS')))).flat() as string[];
    await Promise.all([here, there].map((who) => who.withLock(b, () => undefined, { fair: true })));
    await until(async () => (await channelsOf(nodes)).length === 2);
    const earlier = await channelsOf(nodes);
    const ownIn = async (some: readonly ClusterNode[]) =>
      (await channelsOf(some)).filter((name) => !earlier.includes(name)).length;
    const chance = jest.spyOn(Math, 'random');
    const client = cluster.client();
    await once(client, 'ready');
    let who!: ClosableLockService;
    for (const part of [0.1, 0.4, 0.7]) {
      chance.mockReturnValue(part);
      who = lockService(redisStore({ connection: client }), { wait: 10_000, shutdownGrace: 0 });
      await who.withLock(b, () => undefined, { fair: true });
      await until(async () => (await ownIn(nodes)) === 1);
      if ((await ownIn([master(0)])) === 1) break;
      await who.close();
    }
    // The lowest slots are those of the first master.
    chance.mockReturnValue(0.1);
    await who.list();
    chance.mockRestore();

    await takeOver(0);
    await until(async () => (await master(0).redis.info('replication')).includes('role:slave'));
    const others = nodes.filter((node) => node !== master(0));
    for (const { redis } of others) await redis.cluster('FORGET', master(0).id);
    await master(0).redis.cluster('RESET', 'HARD');
    const lock = await lockInTheEnd(here, b);
    const isMoved = async () => {
      await expect(who.lock(b, { wait: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
      return (await ownIn(others)) === 1;
    };
    await until(isMoved, 15_000);
    const isKnown = ({ options }: Redis) => options.port === master(0).port;
    await until(() => !client.nodes('master').some(isKnown));
    expect(await lock.unlock()).toBe(true);
    await who.close();
  }, 40_000);

  it('a subscription whose node dies moves also when the app has closed its client', async () => {
    const client = cluster.client();
    await once(client, 'ready');
    const who = lockService(redisStore({ connection: client }), { wait: 10_000, shutdownGrace: 0 });
    await who.withLock(b, () => undefined, { fair: true });
    await Promise.all([here.close(), there.close()]);
    const nodes = [...cluster.masters, ...cluster.replicas];
    const isSubscribed = async ({ redis }: ClusterNode) => (await redis.pubsub('CHANNELS')).length > 0;
    let home: ClusterNode | undefined;
    await until(async () => {
      const are = await Promise.all(nodes.map(isSubscribed));
      home = nodes.find((_, index) => are[index]);
      return are.filter(Boolean).length === 1;
    });
    client.disconnect();
    await who.withLock(b, () => undefined);
    process.kill(home!.pid, 'SIGKILL');
    const others = nodes.filter((node) => node !== home);
    await until(async () => (await Promise.all(others.map(isSubscribed))).includes(true));
    await who.close();
  }, 40_000);

  it('a subscription whose node hangs and is replaced moves, though its process only holds locks: they are listed', async () => {
    const isSubscribed = async ({ redis }: ClusterNode) =>
      String(await redis.call('CLIENT', 'LIST', 'TYPE', 'pubsub')).includes('name=nest-redis-lock');
    await here.withLock(b, () => undefined, { fair: true });
    let hanging = -1;
    await until(async () => {
      hanging = (await Promise.all(cluster.masters.map(isSubscribed))).indexOf(true);
      return hanging >= 0;
    });
    const key = keyAt((hanging + 1) % 3);
    await here.lock(key, { lease: 900 });
    process.kill(master(hanging).pid, 'SIGSTOP');
    try {
      await takeOver(hanging);
      await (await lockInTheEnd(there, keyAt(hanging))).unlock();
      await until(async () => (await there.list()).locks.some((listed) => listed.key === key), 15_000);
    } finally {
      process.kill(master(hanging).pid, 'SIGCONT');
    }
  }, 30_000);
});
