import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Cluster, type Redis } from 'ioredis';
import { once } from 'node:events';
import { LockTimeoutError, LockUnavailableError } from 'nest-redis-lock';
import { slotOf } from '../../lib/redis/cluster/cluster-slot.js';
import { lettingOneHang } from '../../lib/redis/connection/client-defaults.js';
import { turn, until } from '../support/deferred.js';
import { keyAt, startClusterWithoutFailovers, type RedisCluster } from '../support/redis/redis-cluster.js';
import { SlotMove } from '../support/redis/slot-move.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';

/** Longer than a busy machine takes for a call of a live node. */
const COMMAND_TIMEOUT_MS = 600;

/** How late a busy machine may be. */
const BUSY_MS = 1000;

const onFirst = Array.from({ length: 20 }, (_, nth) => keyAt(0, nth + 1));
const [a, b, c] = [0, 1, 2].map((master) => keyAt(master)) as [string, string, string];

describe('A node of a Redis Cluster that hangs with its connections open, or dies', () => {
  let cluster: RedisCluster;
  let client: Cluster;
  let locks: ClosableLockService;

  beforeEach(async () => {
    cluster = await startClusterWithoutFailovers();
    client = cluster.client();
    await once(client, 'ready');
    const store = redisStore({ connection: client, commandTimeout: COMMAND_TIMEOUT_MS });
    locks = lockService(store, { lease: '30s', shutdownGrace: 0 });
    await Promise.all([...onFirst, a, b, c].map((key) => locks.withLock(key, () => undefined)));
  }, 30_000);

  afterEach(async () => {
    await locks.close();
    await cluster.stop();
  });

  /** How many commands the client keeps for the first master, because it got no replies to them. */
  function kept(): number {
    const { port } = cluster.masters[0]!;
    const node = client.nodes('master').find(({ options }) => options.port === port);
    return (node as Redis & { readonly commandQueue: { readonly length: number } }).commandQueue.length;
  }

  const unavailable = (call: Promise<unknown>): Promise<LockUnavailableError> =>
    call.then(
      () => {
        throw new Error('the call got the lock');
      },
      (error: unknown) => {
        expect(error).toBeInstanceOf(LockUnavailableError);
        return error as LockUnavailableError;
      },
    );

  it('calls for its keys fail fast, except a probe now and then, and the client keeps few commands', async () => {
    const { pid, port } = cluster.masters[0]!;
    const [held, released] = [await locks.lock(a), await locks.lock(keyAt(0, 30))];
    process.kill(pid, 'SIGSTOP');
    try {
      await unavailable(locks.lock(onFirst[1]!));
      for (let round = 0; round < 10; round++) {
        const errors = Promise.all(onFirst.map((key) => unavailable(locks.lock(key))));
        expect(await locks.withLock(b, () => 'done')).toBe('done');
        const failedFast = (await errors).filter(({ detail }) => detail.includes(`node 127.0.0.1:${port}`));
        // One or two were probes.
        expect(failedFast.length).toBeGreaterThan(15);
        expect(kept()).toBeLessThan(20);
      }
      await released.unlock();
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    const backAt = performance.now();
    await until(() => locks.withLock(onFirst[1]!, () => true).catch(() => false));
    expect(performance.now() - backAt).toBeLessThan(BUSY_MS);
    await Promise.all([...onFirst, released.keys[0]!].map((key) => locks.withLock(key, () => undefined)));
    await until(() => kept() === 0);
    expect(held.isHeld).toBe(true);
    expect(await held.unlock()).toBe(true);
  }, 30_000);

  it.each([
    ['hangs', 'SIGSTOP'],
    ['dies', 'SIGKILL'],
  ] as const)(
    'when it %s, callers that share one key of it fail together, and those of other nodes go on',
    async (_, signal) => {
      const { pid } = cluster.masters[0]!;
      const nth = (index: number) => `{${a}}${index}`;
      const holder = await locks.lock([a, b]);
      const sharing = Array.from({ length: 12 }, (_, index) => locks.lock([a, nth(index)], { wait: '20s' }));
      const mixed = Array.from({ length: 12 }, (_, index) => locks.lock([b, nth(index)], { wait: '20s' }));
      const elsewhere = locks.withLock([b, c], () => 'done', { wait: '20s' });
      process.kill(pid, signal);
      const startedAt = performance.now();
      try {
        void holder.unlock();
        await Promise.all([...sharing, ...mixed].map(unavailable));
        // One after the other, they take more than 7 s.
        expect(performance.now() - startedAt).toBeLessThan(3 * COMMAND_TIMEOUT_MS + BUSY_MS);
        expect(await elsewhere).toBe('done');
      } finally {
        if (signal === 'SIGSTOP') process.kill(pid, 'SIGCONT');
      }
    },
    30_000,
  );

  it('when the cluster refuses all keys for the sake of one slot, callers that share one key fail together', async () => {
    const nodes = [...cluster.masters, ...cluster.replicas];
    await Promise.all(nodes.map(({ redis }) => redis.config('SET', 'cluster-require-full-coverage', 'yes')));
    // The owner first: its pings would give it the slot again.
    for (const { redis } of cluster.masters.toReversed()) await redis.cluster('DELSLOTS', slotOf(`lock:${c}`));
    const startedAt = performance.now();
    const sharing = onFirst.slice(0, 12).map((key) => locks.lock([b, key], { wait: '20s' }));
    await Promise.all(sharing.map(unavailable));
    // One after the other, they take more than 3.6 s.
    expect(performance.now() - startedAt).toBeLessThan(3 * COMMAND_TIMEOUT_MS + BUSY_MS);
  }, 30_000);

  it('callers that wait for a key of one node go on when another node refuses, or a slot is being moved', async () => {
    const [first] = cluster.masters;
    await first!.redis.config('SET', 'maxmemory', 1);
    const refused = unavailable(locks.lock([b, a], { wait: '20s' }));
    const others = [1, 2].map(() => locks.withLock(b, () => 'done', { wait: '20s' }));
    await refused;
    expect(await Promise.all(others)).toEqual(['done', 'done']);
    await first!.redis.config('SET', 'maxmemory', 0);

    await cluster.masters[1]!.redis.cluster('SETSLOT', slotOf(`lock:${a}`), 'IMPORTING', first!.id);
    await first!.redis.cluster('SETSLOT', slotOf(`lock:${a}`), 'MIGRATING', cluster.masters[1]!.id);
    const stuck = unavailable(locks.lock([b, a], { wait: '20s' }));
    const further = [1, 2].map(() => locks.withLock(b, () => 'done', { wait: '20s' }));
    await stuck;
    expect(await Promise.all(further)).toEqual(['done', 'done']);
  }, 30_000);

  it('when a slot is being moved to it, calls for keys of that slot fail, and no promise is left alone', async () => {
    const unhandled: unknown[] = [];
    const note = (error: unknown) => void unhandled.push(error);
    process.on('unhandledRejection', note);
    const [held, next] = [await locks.lock(a), cluster.masters[1]!];
    const other = lockService(redisStore({ connection: client, commandTimeout: COMMAND_TIMEOUT_MS }));
    const move = new SlotMove(cluster, a, 0, 1);
    await move.begin();
    for (const name of await move.rest()) await move.take(name);
    const fails = () => Promise.all([unavailable(held.extend()), unavailable(other.lock(a))]);
    try {
      await held.extend();
      process.kill(next.pid, 'SIGSTOP');
      await fails();
      process.kill(next.pid, 'SIGKILL');
      await until(() =>
        client.nodes().every(({ options, status }) => options.port !== next.port || status !== 'ready'),
      );
      await fails();
      expect(unhandled).toEqual([]);
      expect(held.isHeld).toBe(true);
    } finally {
      process.off('unhandledRejection', note);
      await other.close();
    }
  }, 30_000);

  it('when it dies, calls for its keys too take no keys of other nodes from anybody', async () => {
    const other = lockService(redisStore({ connection: cluster.client(), commandTimeout: COMMAND_TIMEOUT_MS }), {
      shutdownGrace: 0,
    });
    // It connects while all nodes are well: later, that may take it more than one time-out.
    await other.withLock(a, () => undefined);
    process.kill(cluster.masters[2]!.pid, 'SIGKILL');
    const isDown = () => client.nodes('master').some(({ status }) => status !== 'ready');
    await until(async () => isDown() || (await locks.isLocked(c).catch(() => true), isDown()));
    const failing = unavailable(locks.lock([a, c], { wait: '5s' }));
    let hasFailed = false;
    void failing.then(() => (hasFailed = true));
    const errors: unknown[] = [];
    while (!hasFailed)
      await other.withLock(a, () => undefined, { wait: 0 }).catch((error: unknown) => errors.push(error));
    await other.close();
    expect(errors.filter((error) => error instanceof LockTimeoutError)).toEqual([]);
  }, 30_000);

  it('a call for several nodes that fails at the first of them asks the others for nothing', async () => {
    const { pid } = cluster.masters[0]!;
    const scripts = () =>
      Promise.all(
        cluster.masters.slice(1).map(async ({ redis }) => {
          const [, calls] = /cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats')) ?? [];
          return Number(calls);
        }),
      );
    const before = await scripts();
    process.kill(pid, 'SIGSTOP');
    try {
      await unavailable(locks.lock([a, b, c]));
      await turn();
      // What was sent before these has run, too.
      for (const key of [b, c]) await locks.withLock(key, () => undefined);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    expect(await scripts()).toEqual(before.map((calls) => calls + 2));
  }, 30_000);

  it('processes ask and answer each other over the other nodes', async () => {
    const theirs = cluster.client();
    const there = lockService(redisStore({ connection: theirs, commandTimeout: COMMAND_TIMEOUT_MS }), {
      shutdownGrace: 0,
    });
    const held = await there.lock(b, { label: 'there', lease: '3s' });
    const { pid, port } = cluster.masters[0]!;
    const look = async () => {
      const { locks: found, unreached } = await locks.list();
      return [...found.map(({ holders }) => holders[0]!.label), ...unreached.map(({ name }) => name)];
    };
    process.kill(pid, 'SIGSTOP');
    try {
      // Each process sends a message to that node at most once. One that listens to it has to notice that, too.
      const known = ['there', `127.0.0.1:${port}`];
      await until(async () => (await look()).join() === known.join(), 25_000);
      for (let times = 0; times < 8; times++) expect(await look()).toEqual(known);
      expect((await locks.list()).unreached[0]!.message).toMatch(/did not reply in time/);
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await held.unlock();
    await there.close();
    theirs.disconnect();
  }, 60_000);

  it("a client of the library's own is patient while all hang, and as quick as before when they reply", async () => {
    const nodes = cluster.masters.map(({ port }) => ({ host: '127.0.0.1', port }));
    const own = lettingOneHang(
      new Cluster(nodes, { lazyConnect: true }).on('error', () => undefined),
      100,
    );
    for (const { pid } of cluster.masters) process.kill(pid, 'SIGSTOP');
    try {
      void own.connect().catch(() => undefined);
      await until(() => own.options.slotsRefreshTimeout! >= 800, 20_000);
    } finally {
      for (const { pid } of cluster.masters) process.kill(pid, 'SIGCONT');
    }
    await until(async () => {
      await new Promise<void>((done) => own.refreshSlotsCache(() => done()));
      return own.status === 'ready' && own.options.slotsRefreshTimeout === 100;
    });
    own.disconnect();
  }, 60_000);

  it('renewals reach the node again in time: no lock of many slots is lost', async () => {
    const { pid } = cluster.masters[0]!;
    const lease = 3000;
    const held = await Promise.all(onFirst.map((key) => locks.lock(key, { lease })));
    process.kill(pid, 'SIGSTOP');
    try {
      await until(() => held.every((lock) => lock.remaining() < lease / 2));
    } finally {
      process.kill(pid, 'SIGCONT');
    }
    await until(() => held.every((lock) => lock.remaining() > lease / 2));
    expect(held.map(({ isHeld }) => isHeld)).toEqual(held.map(() => true));
    for (const lock of held) expect(await lock.unlock()).toBe(true);
  }, 30_000);

  it('a node is not taken for one when a slot of it moves, so that calls for it get no reply', async () => {
    const move = new SlotMove(cluster, a, 0, 1);
    await cluster.masters[0]!.redis.set(`lock:${a}`, 'somebody else');
    await move.begin();
    await move.take(`lock:${a}`);
    for (let times = 0; times < 3; times++) {
      await unavailable(locks.lock(a));
      const calls = onFirst.map((key) => locks.withLock(key, () => 'done'));
      expect(await Promise.all(calls)).toEqual(calls.map(() => 'done'));
    }
    await move.finish();
  }, 30_000);
});
