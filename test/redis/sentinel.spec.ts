import { afterAll, afterEach, beforeAll, describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  LockService,
  LockUnavailableError,
  RedisLockModule,
  type Lock,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { aborted, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startSentinel, type RedisSentinel, type SentinelServer } from '../support/redis/redis-sentinel.js';

/** Longer than a failover takes. */
const LEASE_MS = 9000;

/** More than the sockets between a master and its replicas hold. */
const MORE_THAN_FITS = 'x'.repeat(32 * 1024 * 1024);

describe('Behind Sentinel', () => {
  let sentinel: RedisSentinel;
  const services: ClosableLockService[] = [];
  const clients: Redis[] = [];

  beforeAll(async () => {
    sentinel = await startSentinel();
  }, 40_000);

  afterEach(async () => {
    await Promise.all(services.splice(0).map((service) => service.close()));
    for (const client of clients.splice(0)) client.disconnect();
    await sentinel.heal();
  }, 70_000);

  afterAll(() => sentinel.stop());

  const ownConnection = () => sentinel.connection;

  /** As an app has it: it sends again by itself, and hears of a failover when the old master hangs up. */
  const appsClient = () => {
    const client = new Redis({ ...sentinel.connection }).on('error', () => undefined);
    clients.push(client);
    return client;
  };

  function service(
    connection: RedisLockModuleOptions['connection'],
    options: RedisLockModuleOptions = {},
  ): ClosableLockService {
    const terms = { lease: LEASE_MS, wait: 20_000, commandTimeout: 6000, shutdownGrace: 0, connection, ...options };
    const made = lockService(redisStore(terms), terms);
    services.push(made);
    return made;
  }

  const queued = (key: string) =>
    until(async () => (await (await sentinel.master()).redis.zcard(`{lock:${key}}:queue`)) === 1);

  /** Resolves when the replicas have what the master has. */
  const replicated = async () => {
    const { redis } = await sentinel.master();
    await redis.incr('written');
    expect(await redis.wait(2, 5000)).toBe(2);
  };

  /** What is done meanwhile reaches no replica, if the master dies right after it. */
  async function behindTheReplicas<T>(work: () => Promise<T>): Promise<T> {
    const { redis } = await sentinel.master();
    for (const { pid } of await sentinel.replicas()) process.kill(pid, 'SIGSTOP');
    await redis.set('filler', MORE_THAN_FITS);
    return work();
  }

  async function killMasterAhead(): Promise<SentinelServer> {
    const replicas = await sentinel.replicas();
    const next = sentinel.killMaster();
    for (const { pid } of replicas) process.kill(pid, 'SIGCONT');
    return next;
  }

  /** Asks for as long as there is nobody who can answer. */
  async function lockInTheEnd(who: LockService, key: string, errors: unknown[] = []): Promise<Lock> {
    const giveUpAt = performance.now() + 15_000;
    for (;;) {
      const error: unknown = await who.lock(key).catch((error: unknown) => error);
      if (!(error instanceof Error)) return error as Lock;
      expect(error).toBeInstanceOf(LockUnavailableError);
      if (performance.now() > giveUpAt) throw error;
      errors.push(error);
    }
  }

  it.each([
    ['options of ioredis', ownConnection],
    ['a client of the app', appsClient],
  ])(
    'all kinds of locks work in a module that is given %s',
    async (_what, connection) => {
      const module = await Test.createTestingModule({
        imports: [RedisLockModule.forRoot({ connection: connection(), lease: LEASE_MS })],
      }).compile();
      const locks = (await module.init()).get(LockService);
      const other = service(connection());

      await locks.withLock('alone', async () => expect(await other.tryLock('alone')).toBeNull());
      await locks.withLock('shared', async () => {
      await using reader = await other.lock('shared', { mode: 'read', wait: 0 });
      expect(reader.isHeld).toBe(true);
      expect(await other.tryLock('shared')).toBeNull();
    }, { mode: 'read' }); // prettier-ignore
      await locks.withLock('few', async () => {
      await using second = await other.lock('few', { permits: 2, wait: 0 });
      expect(second.mode).toBe('permit');
      expect(await other.tryLock('few', { permits: 2 })).toBeNull();
    }, { permits: 2 }); // prettier-ignore
      await locks.withLock(['b', 'a'], async () =>
        expect([await other.tryLock('a'), await other.tryLock('b')]).toEqual([null, null]),
      );

      const held = await locks.lock('line');
      const next = other.lock('line', { fair: true });
      await queued('line');
      expect((await locks.inspect('line'))!.waiters).toHaveLength(1);
      await held.unlock();
      expect((await next).fence).toBeGreaterThan(held.fence);
      expect(await locks.forceUnlock('line')).toBe(true);
      await aborted((await next).signal);
      await module.close();
    },
    20_000,
  );

  it('who waits is told of its turn, also by the next master', async () => {
    const [here, there] = [service(ownConnection()), service(ownConnection())];
    for (const who of [here, there]) await who.withLock('told', () => undefined, { fair: true });
    await sentinel.failover();
    for (const who of [here, there]) await (await lockInTheEnd(who, 'told')).unlock();
    const { redis } = await sentinel.master();
    await until(async () => (await redis.pubsub('CHANNELS', '{lock:}:wake:*')).length === 2);

    const took: number[] = [];
    for (let times = 0; times < 5; times++) {
      const held = await here.lock('told');
      const next = there.lock('told', { fair: true });
      await queued('told');
      const freedAt = performance.now();
      await held.unlock();
      await (await next).unlock();
      took.push(performance.now() - freedAt);
    }
    // By asking now and then, it would take most of a second each.
    expect(took.sort((a, b) => a - b)[2]).toBeLessThan(400);
  }, 30_000);

  describe.each([
    ['options of ioredis', ownConnection],
    ['a client of the app', appsClient],
  ])('with %s', (_what, connection) => {
    it('locks that a new master knows stay and are renewed, those that it does not are lost at once, waiters have their turn, fences grow', async () => {
      const [here, there] = [service(connection()), service(connection())];
      const known = await here.lock('known');
      const waiting = there.lock('known', { fair: true });
      await queued('known');
      await there.withLock('counted', () => undefined);
      await replicated();
      const { lost, fences } = await behindTheReplicas(async () => {
        const lost = await here.lock('unknown', { lease: '1m' });
        const fences: number[] = [];
        for (let times = 0; times < 20; times++)
          fences.push(await there.withLock('counted', ({ fence }) => fence, { fair: true }));
        return { lost, fences };
      });
      expect(lost.isHeld).toBe(true);
      const { redis } = await killMasterAhead();
      const namedAt = performance.now();
      expect(await redis.exists('lock:unknown')).toBe(0);

      // Connecting again takes up to a second, looking a round trip; its next renewal is 20 s away.
      expect(await aborted(lost.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
      expect(performance.now() - namedAt).toBeLessThan(3000);
      await until(async () => (await redis.pttl('lock:known')) > LEASE_MS * 0.9, 8000);
      expect(known.isHeld).toBe(true);

      const [counted, again] = [await lockInTheEnd(there, 'counted'), await lockInTheEnd(there, 'unknown')];
      expect(counted.fence).toBeGreaterThan(fences.at(-1)!);
      expect(again.fence).toBeGreaterThan(lost.fence);
      expect(await known.unlock()).toBe(true);
      expect((await waiting).fence).toBeGreaterThan(known.fence);
    }, 40_000);

    it('a failover that an operator asks for is lived through as well', async () => {
      const [here, there] = [service(connection()), service(connection())];
      const held = await service(sentinel.connection).lock('held');
      const waiting = there.lock('held', { fair: true });
      await queued('held');
      await replicated();
      const { redis } = await sentinel.failover();
      await until(async () => (await redis.pttl('lock:held')) > LEASE_MS * 0.9, 12_000);
      expect(held.isHeld).toBe(true);
      expect(await held.unlock()).toBe(true);
      expect((await waiting).fence).toBeGreaterThan(held.fence);
      // The old master may give locks until it is told that it is a replica now, and hangs up.
      await until(async () => {
        const other = await lockInTheEnd(here, 'other');
        const isThere = (await redis.exists('lock:other')) === 1;
        await other.unlock();
        return isThere;
      }, 15_000);
    }, 40_000);
  });

  it('writing to an old master that is a replica now finds the new one', async () => {
    // It does not hear from the sentinels, and the old master does not hang up.
    const here = service({ ...sentinel.connection, failoverDetector: false });
    await here.withLock('a', () => undefined);
    const old = await sentinel.master();
    const { port, redis } = await sentinel.failover();
    await old.redis.replicaof('127.0.0.1', port);
    const errors: unknown[] = [];
    const lock = await lockInTheEnd(here, 'a', errors);
    expect((errors[0] as LockUnavailableError).detail).toMatch(/READONLY/);
    expect(await redis.get('lock:a')).toBe(lock.token);
  }, 30_000);
});
