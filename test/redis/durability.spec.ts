import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError, type RedisLockModuleOptions } from 'nest-redis-lock';
import { aborted, turn, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startReplicated, type Replicated } from '../support/redis/replicas.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';

/** Shorter than the servers have been up when the tests begin, so that they are trusted. */
const LEASE_MS = 400;

describe('A grant that must be durable', () => {
  let servers: Replicated;
  let redis: Redis;
  let here: ClosableLockService;
  let there: ClosableLockService;

  const durable = (options: RedisLockModuleOptions = {}) => {
    const terms = {
      connection: servers.master.url,
      lease: LEASE_MS,
      shutdownGrace: 0,
      durability: { replicas: 2, timeout: 300 },
      ...options,
    };
    return lockService(redisStore(terms), terms);
  };

  beforeAll(async () => {
    servers = await startReplicated(2);
    redis = new Redis(servers.master.url);
    await until(async () => Number(/uptime_in_seconds:(\d+)/.exec(await redis.info('server'))![1]) >= 4);
  });

  afterAll(async () => {
    redis.disconnect();
    await servers.stop();
  });

  beforeEach(() => {
    here = durable();
    there = durable();
  });

  afterEach(async () => {
    for (const { pid } of servers.replicas) process.kill(pid, 'SIGCONT');
    await here.close();
    await there.close();
    await until(async () => (await redis.keys('lock:*')).length === 0);
  });

  it('a grant is on as many replicas as asked for when the caller gets it', async () => {
    const lock = await here.lock('a');
    for (const { url } of servers.replicas) {
      const replica = new Redis(url);
      expect(await replica.get('lock:a')).toBe(lock.token);
      replica.disconnect();
    }
  });

  it('the grant of a waiter, which is offered its turn, is on the replicas too', async () => {
    const first = await here.lock('a');
    const second = there.lock('a', { fair: true });
    await until(async () => (await redis.zcard('{lock:a}:queue')) === 1);
    await first.unlock();
    const replica = new Redis(servers.replicas[0]!.url);
    expect(await replica.get('lock:a')).toBe((await second).token);
    replica.disconnect();
  });

  it('a grant is undone when there are too few replicas, and the error says so', async () => {
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    for (const mode of ['exclusive', 'read'] as const) {
      const error: unknown = await here.lock('a', { mode }).catch((error: unknown) => error);
      expect(error).toBeInstanceOf(LockUnavailableError);
      expect((error as LockUnavailableError).detail).toMatch(
        /Only 1 of the 2 replicas that "durability" asks for had the lock within 300 ms, so it was released/,
      );
      expect(await redis.exists('lock:a')).toBe(0);
    }
  });

  it('a nested writer that too few replicas have leaves another nested writer alone', async () => {
    const [read, write] = [{ mode: 'read', lease: 3000 }, { mode: 'write' }] as const;
    await here.withLock(
      ['a', 'b'],
      async () => {
        const valueInside = await here.withLock(
          'b',
          async () => {
            process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
            await expect(here.lock('a', write)).rejects.toBeInstanceOf(LockUnavailableError);
            return redis.get('lock:b');
          },
          write,
        );
        expect(valueInside).toMatch(/^nest-redis-lock:write:/);
        await until(async () => !(await redis.get('lock:b'))!.startsWith('nest-redis-lock:write'));
      },
      read,
    );
  });

  it('while a replica is missing, callers that share one key fail together', async () => {
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    const startedAt = performance.now();
    const calls = Array.from({ length: 12 }, (_, nth) => here.lock(['a', `b${nth}`], { wait: '20s' }));
    await Promise.all(calls.map((call) => expect(call).rejects.toBeInstanceOf(LockUnavailableError)));
    // One after the other, they take more than 3.6 s.
    expect(performance.now() - startedAt).toBeLessThan(2000);
  });

  it('while a replica is missing, callers that wait for its answers to others hear of that, and not that the master is slow', async () => {
    const patient = durable({ durability: { replicas: 2, timeout: 700 } });
    await patient.withLock('warm up', () => undefined);
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    const told = (key: string) =>
      expect(patient.lock(key)).rejects.toMatchObject({ detail: expect.stringMatching(/^Only 1 of the 2 replicas/) });
    const first = told('a');
    await until(async () => (await redis.info('clients')).includes('blocked_clients:1'));
    await Promise.all([first, told('b'), told('c')]);
    await patient.close();
  });

  it('while a replica is missing, who waits behind another process hears of that, and not that the key is busy', async () => {
    const options = { durability: { replicas: 2, timeout: 900 } };
    const processes = Array.from({ length: 6 }, () => durable(options));
    await Promise.all(processes.map((one, nth) => one.withLock(`warm up ${nth}`, () => undefined)));
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    // The key goes from one to the next each 0.9 s.
    const calls = processes.map((one) => one.lock('a', { wait: '4s' }));
    await Promise.all(calls.map((call) => expect(call).rejects.toBeInstanceOf(LockUnavailableError)));
    for (const one of processes) await one.close();
  }, 20_000);

  it('a waiter whose connection drops while it asks again goes on waiting', async () => {
    const proxy = await startProxy(servers.master.port);
    // A busy machine can be late with a renewal.
    const lease = 3000;
    const waiting = durable({ connection: proxy.url, commandTimeout: 5000, lease });
    await waiting.withLock('b', () => undefined);
    const held = await here.lock('c', { lease });
    const waiter = waiting.lock('c', { wait: '20s' });
    await until(async () => (await redis.zcard('{lock:c}:queue')) === 1);
    for (let drops = 0; drops < 20; drops++) {
      proxy.cut();
      await until(() => waiting.isLocked('c').catch(() => false));
    }
    expect(await Promise.race([waiter, turn().then(() => 'waits')])).toBe('waits');
    await held.unlock();
    expect((await waiter).isHeld).toBe(true);
    await waiting.close();
    await proxy.stop();
  }, 30_000);

  it('a call settles within the command time-out, however slow each of its commands is, and leaves nothing behind', async () => {
    const proxy = await startProxy(servers.master.port);
    const options = { connection: proxy.url, commandTimeout: 1000, lease: 2000 };
    const [warm, fresh] = [durable(options), durable(options)];
    await until(() => warm.withLock('a', () => true).catch(() => false));
    const slow = async (locks: ClosableLockService) => {
      const startedAt = performance.now();
      await expect(locks.tryLock('a')).rejects.toBeInstanceOf(LockUnavailableError);
      expect(performance.now() - startedAt).toBeLessThan(1350);
      await until(async () => (await redis.exists('lock:a')) === 0);
    };
    // Each reply comes in time, but not those of two commands in a row.
    proxy.delay(350);
    await slow(warm);
    // A call that connects needs the replies of the handshake, and of the question for the age of the server, as well.
    proxy.delay(150);
    await slow(fresh);
    proxy.delay(0);
    for (const locks of [warm, fresh]) await locks.close();
    await proxy.stop();
  });

  it('the commands of an app that lends its client do not wait for replicas', async () => {
    const client = new Redis(servers.master.url);
    const borrowing = durable({ connection: client, durability: { replicas: 2, timeout: 1000 }, commandTimeout: 3000 });
    await borrowing.withLock('a', () => undefined);
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    const call = expect(borrowing.lock('a')).rejects.toBeInstanceOf(LockUnavailableError);
    const isWaiting = async () => /\bcmd=wait\b/.test(String(await redis.client('LIST')));
    await until(isWaiting);
    await client.get('of the app');
    expect(await isWaiting()).toBe(true);
    await call;
    await borrowing.close();
    client.disconnect();
  });

  it('a renewal does not wait for a replica that is not needed', async () => {
    const one = durable({ durability: { replicas: 1, timeout: 300 } });
    const lock = await one.lock('a', { lease: '2s' });
    const wouldEndAt = performance.now() + 2000;
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    // These wait, on the connection of grants, for both.
    while (performance.now() < wouldEndAt) await expect(here.lock('b')).rejects.toBeInstanceOf(LockUnavailableError);
    expect(lock.isHeld).toBe(true);
    await one.close();
  });

  it('a lock is renewed in the database to which the app has switched its client before the first lock', async () => {
    const client = new Redis(servers.master.url);
    const borrowing = durable({ connection: client });
    await client.select(3);
    await borrowing.withLock('a', async (lock) => {
      await lock.extend();
      expect(await client.exists('lock:a')).toBe(1);
    });
    await borrowing.close();
    client.disconnect();
  });

  it('a lock ends with its lease when too few replicas have its renewals', async () => {
    const lock = await here.lock('a', { lease: '2s' });
    const lost = aborted(lock.signal);
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    await expect(lock.extend()).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/Only 1 of the 2 replicas that "durability" asks for had the renewal within 300 ms/),
    );
    expect(lock.isHeld).toBe(true);
    expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
  });

  it('a call for new fences that too few replicas have does not extend a lock', async () => {
    const store = redisStore({
      connection: servers.master.url,
      lease: LEASE_MS,
      durability: { replicas: 2, timeout: 100 },
    });
    const lock = { keys: ['a'], token: 'one', leaseMs: LEASE_MS };
    await store.acquire({ ...lock, sharing: 'exclusive', label: undefined, queue: false });
    expect(await store.reserve(lock)).toMatchObject({ granted: true });
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    await expect(store.reserve(lock)).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/Only 1 of the 2 replicas/),
    );
    await store.release(lock);
    await store.close();
  });

  it('the replicas are asked once for all renewals that are replied to together', async () => {
    const calls = async () => Number(/cmdstat_wait:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1] ?? 0);
    const store = redisStore({
      connection: servers.master.url,
      lease: LEASE_MS,
      durability: { replicas: 2, timeout: 300 },
    });
    const batches = Array.from({ length: 40 }, (_, batch) =>
      Array.from({ length: 128 }, (_, number) => ({ keys: [`k:${batch}:${number}`], token: 'one', leaseMs: 1000 })),
    );
    await redis.mset(batches.flat().flatMap(({ keys }) => [`lock:${keys[0]}`, 'one']));
    await store.renew(batches[0]!);
    const before = await calls();
    const outcomes = await Promise.all(batches.map((batch) => store.renew(batch)));
    expect(outcomes.flatMap(({ gone, unknown }) => [...gone, ...unknown])).toEqual([]);
    expect((await calls()) - before).toBeLessThanOrEqual(20);
    await store.close();
  });

  it('the health check is down when too few replicas are there', async () => {
    expect(await here.health()).toMatchObject({ isUp: true });
    process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
    const { isUp, errors } = await here.health();
    expect({ isUp, says: errors.map((error) => (error as LockUnavailableError).detail) }).toEqual({
      isUp: false,
      says: [expect.stringMatching(/^Only 1 of the 2 replicas that "durability" asks for/)],
    });
  });

  it('forceUnlock releases the lock of the given token, and of nobody else', async () => {
    const lock = await here.lock('a');
    const { token } = lock;
    expect(await there.forceUnlock('a', { token: `${token}0` })).toBe(false);
    expect(lock.isHeld).toBe(true);
    const waiting = there.lock('a');
    await until(async () => (await redis.zcard('{lock:a}:queue')) === 1);
    expect(await there.forceUnlock('a', { token, by: 'ops' })).toBe(true);
    expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken', forced: { by: 'ops' } });
    const next = await waiting;
    expect(await here.forceUnlock('a', { token })).toBe(false);
    expect(await next.unlock()).toBe(true);
  });

  it('a server that was started a moment ago grants nothing: it may have forgotten who holds what', async () => {
    const young = await startRedis();
    const service = durable({ connection: young.url, lease: '2s', durability: { replicas: 1 } });
    await expect(service.lock('a')).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(
        /was started a moment ago and may have forgotten locks that are still held: it grants none for another \d+ s/,
      ),
    );
    await service.close();
    await young.stop();
  });

  it('a server that takes over from one that had just started grants nothing, though nobody asked that one for a lock', async () => {
    const uptime = async () => Number(/uptime_in_seconds:(\d+)/.exec(await redis.info('server'))![1]);
    await until(async () => (await uptime()) > 7);
    const young = await startRedis();
    const proxy = await startProxy(young.port);
    const service = durable({ connection: proxy.url, lease: '6s' });
    await service.isLocked('a');
    await service.isLocked('a'); // its reply comes after what the server says of itself: a connection replies in order
    proxy.leadTo(servers.master.port);
    proxy.cut();
    await expect(service.lock('a')).rejects.toHaveProperty('detail', expect.stringMatching(/was started a moment ago/));
    expect(await redis.exists('lock:a')).toBe(0);
    await service.close();
    await proxy.stop();
    await young.stop();
  }, 20_000);

  it('a lock is lost when the server was restarted without its data', async () => {
    const server = await startReplicated(1);
    const terms: RedisLockModuleOptions = {
      connection: server.master.url,
      lease: 1000,
      durability: { replicas: 1, timeout: 300 },
    };
    const service = durable(terms);
    await until(() =>
      service.lock('a', { wait: 0 }).then(
        (lock) => lock.unlock(),
        () => false,
      ),
    );
    const lock = await service.lock('a');
    const lost = aborted(lock.signal);
    await server.master.restart();
    expect(await lost).toMatchObject({ code: 'LOCK_LOST' });
    await expect(service.lock('a', { wait: 0 })).rejects.toBeInstanceOf(LockUnavailableError);
    await service.close();
    await server.stop();
  });

  it('a server that was restarted while the call waited grants nothing', async () => {
    const server = await startReplicated(1);
    const terms: RedisLockModuleOptions = {
      connection: server.master.url,
      lease: 3000,
      commandTimeout: '6s',
      durability: { replicas: 1, timeout: '4s' },
    };
    const service = lockService(redisStore(terms), terms);
    await until(() =>
      service.lock('a', { wait: 0 }).then(
        (lock) => lock.unlock(),
        () => false,
      ),
    );
    await server.master.kill();
    // As soon as the client has noticed, calls wait for the next connection.
    const client = new Redis(server.master.url, { retryStrategy: () => null, lazyConnect: true }).on(
      'error',
      () => undefined,
    );
    await expect(client.connect()).rejects.toThrow();
    const waiting = service.lock('a');
    await Promise.all([
      expect(waiting).rejects.toHaveProperty('detail', expect.stringMatching(/was started a moment ago/)),
      server.master.restart(),
    ]);
    await service.close();
    await server.stop();
  }, 20_000);

  it('a server that came back with older data makes no reader the writer: it may have forgotten other readers', async () => {
    const server = await startReplicated(1);
    const proxy = await startProxy(server.master.port);
    const terms: RedisLockModuleOptions = {
      connection: proxy.url,
      lease: 3000,
      shutdownGrace: 0,
      durability: { replicas: 1, timeout: 300 },
    };
    const service = lockService(redisStore(terms), terms);
    await until(() => service.withLock('a', () => true).catch(() => false));
    await service.withLock(
      'a',
      async (reader) => {
        proxy.refuse();
        await server.master.restart();
        const restarted = new Redis(server.master.url);
        await restarted.set('lock:a', 'nest-redis-lock:read', 'PX', 60_000);
        await restarted.zadd('{lock:a}:holders', Date.now() + 60_000, reader.token);
        restarted.disconnect();
        proxy.welcome();
        const refused = until(async () => {
          const error: unknown = await service.withLock('a', () => 'wrote', { mode: 'write' }).catch((error) => error);
          return error instanceof LockUnavailableError && /was started a moment ago/.test(error.detail);
        });
        await expect(refused).resolves.toBeUndefined();
        expect(reader.isHeld).toBe(true);
      },
      { mode: 'read' },
    );
    await service.close();
    await proxy.stop();
    await server.stop();
  }, 20_000);

  describe('while its master is replaced, and its holder can still reach that', () => {
    const BRIEF_LEASE_MS = 1000;
    let old: Replicated;
    let next: Redis;
    const open: ClosableLockService[] = [];

    const service = (connection: string, options: RedisLockModuleOptions) => {
      const terms: RedisLockModuleOptions = {
        connection,
        lease: BRIEF_LEASE_MS,
        wait: '20s',
        shutdownGrace: 0,
        ...options,
      };
      const locks = lockService(redisStore(terms), terms);
      open.push(locks);
      return locks;
    };

    /**
     * What happens when the sentinels can't reach the master: both replicas have another one, and it hears nothing of
     * that.
     */
    async function replaceMaster(): Promise<void> {
      const [first, second] = old.replicas.map(({ url }) => new Redis(url)) as [Redis, Redis];
      next = first;
      await first.replicaof('NO', 'ONE');
      await second.replicaof('127.0.0.1', old.replicas[0]!.port);
      await until(async () => (await first.wait(1, 100)) === 1, 20_000);
      second.disconnect();
    }

    beforeEach(async () => {
      old = await startReplicated(2);
      next = new Redis(old.replicas[0]!.url);
      await until(
        async () =>
          Number(/uptime_in_seconds:(\d+)/.exec(await next.info('server'))![1]) * 1000 >= BRIEF_LEASE_MS + 1000,
      );
      next.disconnect();
    }, 30_000);

    afterEach(async () => {
      next.disconnect();
      await Promise.all(open.splice(0).map((locks) => locks.close()));
      await old.stop();
    });

    it('a lock on an old master ends before the new master grants it to another caller', async () => {
      const [here, there] = [
        service(old.master.url, { durability: { replicas: 2, timeout: 300 } }),
        service(old.replicas[0]!.url, { durability: { replicas: 1, timeout: 300 } }),
      ];
      const first = await here.lock('a');
      await replaceMaster();
      const second = await there.lock('a');
      expect(first.isHeld).toBe(false);
      expect(second.fence).toBeGreaterThan(first.fence);
    }, 30_000);

    it('a lock without durability ends a lease after the replicas are lost, with "min-replicas-to-write"', async () => {
      const setting = new Redis(old.master.url);
      await setting.config('SET', 'min-replicas-to-write', 1);
      await setting.config('SET', 'min-replicas-max-lag', 1);
      setting.disconnect();
      const here = service(old.master.url, {});
      const first = await here.lock('a');
      const lost = aborted(first.signal);
      await replaceMaster();
      expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
      await expect(here.lock('b', { wait: 0 })).rejects.toHaveProperty('detail', expect.stringMatching(/NOREPLICAS/));
    }, 30_000);
  });

  it.each([
    [{ replicas: 0 }, /"durability\.replicas" is 0/],
    [
      { replicas: 1, timeout: '5s' },
      /"durability\.timeout" is "5s", but must be shorter than "commandTimeout" \(1000 ms\)/,
    ],
    [{ replicas: 1, fsync: true }, /There is no option "durability\.fsync"/],
    [{ replicas: 1, aof: 'always' }, /"durability\.aof" is "always"/],
    ['majority', /"durability" is "majority"/],
  ])('a store refuses "durability": %j', (durability, message) => {
    expect(() => redisStore({ durability } as RedisLockModuleOptions)).toThrow(message);
  });
});
