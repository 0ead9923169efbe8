import { describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { once } from 'node:events';
import { createServer, type AddressInfo } from 'node:net';
import { LockService, RedisLockModule, type LockUnavailableError } from 'nest-redis-lock';
import { aborted, until } from '../support/deferred.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';
import { BehindSentinel, LEASE_MS } from '../support/redis/with-sentinel.js';
import { lockInTheEnd } from '../support/stores/lock-in-the-end.js';

describe('Behind Sentinel', () => {
  const behind = BehindSentinel.forAll();

  it.each(behind.connections)(
    'all kinds of locks work in a module that is given %s',
    async (_what, connection) => {
      const module = await Test.createTestingModule({
        imports: [RedisLockModule.forRoot({ connection: connection(), lease: LEASE_MS })],
      }).compile();
      const locks = (await module.init()).get(LockService);
      const other = behind.service(connection());

      await locks.withLock('alone', async () => expect(await other.tryLock('alone')).toBeNull());
      await locks.withLock(
        'shared',
        async () => {
          await using reader = await other.lock('shared', { mode: 'read', wait: 0 });
          expect(reader.isHeld).toBe(true);
          expect(await other.tryLock('shared')).toBeNull();
        },
        { mode: 'read' },
      );
      await locks.withLock(
        'few',
        async () => {
          await using second = await other.lock('few', { permits: 2, wait: 0 });
          expect(second.mode).toBe('permit');
          expect(await other.tryLock('few', { permits: 2 })).toBeNull();
        },
        { permits: 2 },
      );
      await locks.withLock(['b', 'a'], async () =>
        expect([await other.tryLock('a'), await other.tryLock('b')]).toEqual([null, null]),
      );

      const held = await locks.lock('line');
      const next = other.lock('line', { fair: true });
      await behind.queued('line');
      expect((await locks.inspect('line'))!.waiters).toHaveLength(1);
      await held.unlock();
      expect((await next).fence).toBeGreaterThan(held.fence);
      expect(await locks.forceUnlock('line')).toBe(true);
      await aborted((await next).signal);
      await module.close();
    },
    20_000,
  );

  it('a waiter is notified of its turn, also by the next master', async () => {
    const [here, there] = [behind.service(behind.sentinel.connection), behind.service(behind.sentinel.connection)];
    for (const who of [here, there]) await who.withLock('told', () => undefined, { fair: true });
    await behind.sentinel.failover();
    for (const who of [here, there]) await (await lockInTheEnd(who, 'told')).unlock();
    const { redis } = await behind.sentinel.master();
    await until(async () => (await redis.pubsub('CHANNELS', '{lock:}:wake:*')).length === 2);

    const took: number[] = [];
    for (let times = 0; times < 5; times++) {
      const held = await here.lock('told');
      const next = there.lock('told', { fair: true });
      await behind.queued('told');
      const freedAt = performance.now();
      await held.unlock();
      await (await next).unlock();
      took.push(performance.now() - freedAt);
    }
    // By asking now and then, it would take most of a second each.
    expect(took.sort((a, b) => a - b)[2]).toBeLessThan(400);
  }, 30_000);

  it('a first Sentinel that hangs costs the first call some time, and no error', async () => {
    const hanging = createServer().listen(0, '127.0.0.1');
    await once(hanging, 'listening');
    try {
      const { connection } = behind.sentinel;
      const { port } = hanging.address() as AddressInfo;
      const sentinels = [{ host: '127.0.0.1', port }, ...connection.sentinels];
      const here = behind.service({ ...connection, sentinels }, { commandTimeout: 3000 });
      await (await here.lock('a')).unlock();
    } finally {
      hanging.close();
    }
  });

  it('Sentinels that all reply late get longer with each attempt', async () => {
    const { connection } = behind.sentinel;
    const proxies = await Promise.all(connection.sentinels.map(({ port }) => startProxy(port!)));
    for (const proxy of proxies) proxy.delay(120);
    try {
      const sentinels = proxies.map(({ port }) => ({ host: '127.0.0.1', port }));
      const here = behind.service({ ...connection, sentinels }, { commandTimeout: 600 });
      await (await lockInTheEnd(here, 'a')).unlock();
    } finally {
      await Promise.all(proxies.map((proxy) => proxy.stop()));
    }
  });

  it('a write to an old master that is a replica now finds the new one', async () => {
    // It does not hear from the sentinels, and the old master does not hang up.
    const here = behind.service({ ...behind.sentinel.connection, failoverDetector: false });
    const errors: unknown[] = [];
    // The sentinels close the connections to the old master when they make it a replica, about a second later. On a busy
    // machine they may come first, and then nothing is refused.
    while (errors.length === 0) {
      await behind.sentinel.heal();
      await here.withLock('a', () => undefined);
      const old = await behind.sentinel.master();
      const { port, redis } = await behind.sentinel.failover();
      await old.redis.replicaof('127.0.0.1', port);
      const lock = await lockInTheEnd(here, 'a', errors);
      expect(await redis.get('lock:a')).toBe(lock.token);
      await lock.unlock();
    }
    expect((errors[0] as LockUnavailableError).detail).toMatch(/READONLY/);
  }, 60_000);
});
