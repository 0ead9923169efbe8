import { setTimeout as sleep } from 'node:timers/promises';
import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { LockUnavailableError } from 'nest-redis-lock';
import type { Connection } from '../../lib/redis/connection/connection.js';
import type { Call } from '../../lib/redis/connection/plain-call.js';
import { LockBatch } from '../../lib/redis/locks/lock-batch.js';
import type { Verb } from '../../lib/redis/locks/lock-operation.js';
import { LOCKS } from '../../lib/redis/lua/locks.script.js';
import { fenceCountFor } from '../../lib/store/lock-store.js';
import { KeyNames } from '../../lib/redis/wire/key-names.js';
import { aborted, turn, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';

const holder = 'host:1:abcdefghijklmnop.1';

/** A batch whose calls go to `send`. */
function batchTo(send: (call: Call) => void): LockBatch {
  const refused = (error: Error) => new LockUnavailableError(error.message);
  const redis = { epoch: 0, isIdle: false, refused, send } as unknown as Connection;
  const target = { fenceCounter: '{lock:}:fence', script: LOCKS, slot: undefined, isNode: false };
  return new LockBatch(redis, new KeyNames('lock:'), target);
}

/** Adds an operation to a batch, and resolves with its reply. */
const add = (batch: LockBatch, verb: Verb, key: string) =>
  new Promise((done, failed) =>
    batch.add({ verb, lock: { keys: [key], token: `${holder}${key}+`, leaseMs: 1000 }, done, failed }),
  );

describe('The calls of a batch', () => {
  it.each([
    ['20 operations are one call', 20, [20]],
    ['64 operations are one call', 64, [64]],
    ['100 operations are two calls, so that Redis works on one while the process works on the other', 100, [50, 50]],
    ['300 operations are calls of 128 at most', 300, [128, 128, 44]],
  ])('in a process that is always that busy, %s', async (_what, operations, sizes) => {
    const calls: Call[] = [];
    const batch = batchTo((call) => void calls.push(call));
    const sizeOf = (call: Call) => call.encode().match(/release/g)!.length;
    for (let round = 0; round < 3; round++) {
      const replies = Array.from({ length: operations }, (_, nth) => add(batch, 'release', `key${nth}`));
      await turn();
      const sent = calls.splice(0);
      if (round > 0) expect(sent.map(sizeOf)).toEqual(sizes);
      for (const call of sent) call.succeed(Array.from({ length: sizeOf(call) }, () => 1));
      expect(await Promise.all(replies)).toEqual(replies.map(() => 1));
    }
  });
});

describe('The replies to a batch', () => {
  it.each<[string, unknown]>([
    ['the reply to one of its operations', [holder, 1000, 0, 1795407940015060]],
    ['one fence', 1795407940015060],
    ['too few fences', [1795407940015060]],
    ['too many fences', [1795407940015060, 1795407940015061, 1795407940015062]],
    ['the reply of a transaction', 'QUEUED'],
  ])('a batch of two operations grants none of them when the server replies with %s', async (_what, reply) => {
    const batch = batchTo((call) => call.succeed(reply));
    const outcomes = ['a', 'b'].map((key) => add(batch, 'handoff', key));
    for (const outcome of outcomes) await expect(outcome).rejects.toBeInstanceOf(LockUnavailableError);
  });

  it.each<[string, unknown]>([
    ['the short reply to four', [4, 1795407940015060]],
    ['two fences', [1795407940015060, 1795407940015061]],
    ['a short reply without a fence', [3, null]],
  ])('a batch of three operations grants none of them when the server replies with %s', async (_what, reply) => {
    const batch = batchTo((call) => call.succeed(reply));
    const outcomes = ['a', 'b', 'c'].map((key) => add(batch, 'handoff', key));
    for (const outcome of outcomes) await expect(outcome).rejects.toBeInstanceOf(LockUnavailableError);
  });

  it('a short reply gives the fences in the order of the operations, and as many as each may hand on', async () => {
    const batch = batchTo((call) => call.succeed([4, 1000]));
    const outcomes = (['handoff', 'release', 'handoff', 'release'] as const).map((verb, nth) =>
      add(batch, verb, `${nth}`),
    );
    expect(await Promise.all(outcomes)).toEqual([1001, 1, 1001 + fenceCountFor('+'), 1]);
  });
});

describe('The data in Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  let locks: ClosableLockService;

  withRedis((one) => ({ server, redis } = one));

  beforeEach(() => {
    locks = lockService(redisStore({ connection: server.url }), { wait: 100, shutdownGrace: 0 });
  });

  afterEach(() => locks.close());

  it('a lock is its token, as a plain string under prefix + key, with the lease as its expiry', async () => {
    const lock = await locks.lock('account:42', { lease: '20s' });
    expect(await redis.get('lock:account:42')).toBe(lock.token);
    expect(await redis.pttl('lock:account:42')).toBeGreaterThan(19_000);
    expect(await redis.pttl('lock:account:42')).toBeLessThanOrEqual(20_000);
  });

  it('a token names the process that holds the lock, and no two tokens are the same', async () => {
    const tokens = [];
    for (let i = 0; i < 3; i++) tokens.push(await locks.withLock('account:42', ({ token }) => token));
    expect(new Set(tokens).size).toBe(3);
    expect(tokens[0]).toMatch(new RegExp(`^[\\w.-]+:${process.pid}:[\\w-]{16}\\.1$`));
  });

  it('the fences of locks that are acquired and handed on in one tick are never given twice', async () => {
    const fences: number[] = [];
    // Some have callers behind them in this process, and so get fences for those, too.
    const works = Array.from({ length: 60 }, (_, nth) =>
      locks.withLock(`account:${nth % 20}`, ({ fence }) => void fences.push(fence), { wait: '10s' }),
    );
    await Promise.all(works);
    expect(new Set(fences).size).toBe(60);
    expect(Math.max(...fences)).toBeLessThanOrEqual(Number(await redis.get('{lock:}:fence')));
  });

  it('only the fence counter is left, with an expiry of its own, when all locks are free', async () => {
    await locks.withLock(['a', 'b'], () => undefined);
    expect(await redis.keys('*')).toEqual(['{lock:}:fence']);
    expect(await redis.pttl('{lock:}:fence')).toBeGreaterThan(0);
  });

  it("all names begin with the module's own prefix", async () => {
    const other = lockService(redisStore({ connection: server.url, keyPrefix: 'shop:' }));
    await other.withLock('account:42', async () => expect(await redis.exists('shop:account:42')).toBe(1));
    await other.close();
    expect(await redis.keys('*')).toEqual(['{shop:}:fence']);
  });

  it('a lock excludes a plain SET NX PX of another tool, and is excluded by it', async () => {
    const lock = await locks.lock('account:42');
    expect(await redis.set('lock:account:42', 'theirs', 'PX', 1000, 'NX')).toBeNull();
    await lock.unlock();
    await redis.set('lock:account:42', 'theirs', 'PX', 60_000, 'NX');
    expect(await locks.tryLock('account:42')).toBeNull();
    await expect(locks.lock('account:42')).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/Gave up waiting for lock "account:42" after \d+ ms\. /),
    );
    expect(await redis.get('lock:account:42')).toBe('theirs');
  });

  it('a key without an expiry is acquired only when it is deleted', async () => {
    await redis.set('lock:account:42', 'for ever');
    expect(await locks.tryLock('account:42', { wait: 50 })).toBeNull();
    await redis.del('lock:account:42');
    expect((await locks.lock('account:42')).isHeld).toBe(true);
  });

  it('the scripts run again, by EVAL, after SCRIPT FLUSH', async () => {
    await locks.withLock('account:42', async (lock) => {
      await redis.script('FLUSH');
      await lock.extend();
      await redis.script('FLUSH');
    });
    await redis.script('FLUSH');
    await locks.withLock('account:42', () => undefined);
    expect(await redis.exists('lock:account:42')).toBe(0);
  });

  it('fences grow across FLUSHALL, and when the server clock goes back', async () => {
    const before = await locks.withLock('account:42', ({ fence }) => fence);
    await redis.flushall();
    const after = await locks.withLock('account:42', ({ fence }) => fence);
    expect(after).toBeGreaterThan(before);
    const inAnHour = after + 3_600_000_000;
    await redis.set('{lock:}:fence', inAnHour);
    expect(await locks.withLock('account:42', ({ fence }) => fence)).toBe(inAnHour + 1);
    expect(await locks.withLock('account:42', ({ fence }) => fence)).toBeGreaterThan(inAnHour + 1);
  });

  it('an error says clearly that the key holds something else', async () => {
    await redis.hset('lock:account:42', 'field', 1);
    const error: unknown = await locks.lock('account:42').catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect((error as LockUnavailableError).detail).toContain('change "keyPrefix"');
    expect(await redis.hget('lock:account:42', 'field')).toBe('1');
  });

  it('forceUnlock releases only the token that it found, so a resent command releases nobody else', async () => {
    await redis.set('lock:account:42', 'theirs', 'PX', 60_000);
    const monitor = await redis.monitor();
    const scripts: string[][] = [];
    const released = new Promise<void>((resolve) =>
      monitor.on('monitor', (_time: string, args: string[]) => {
        if (args[0]?.startsWith('EVAL')) scripts.push(args);
        if (args[0] === 'DEL') resolve();
      }),
    );
    expect(await locks.forceUnlock('account:42')).toBe(true);
    await released;
    monitor.disconnect();
    expect(scripts.at(-1)).toEqual(
      expect.arrayContaining([
        'lock:account:42',
        expect.stringMatching(/^force /),
        createHash('sha1').update('theirs').digest('hex'),
      ]),
    );
  });

  it('a key that is overwritten with something that is no lock stops no other key of its batch', async () => {
    const held = await Promise.all(['a', 'b', 'c'].map((key) => locks.lock(key, { lease: 300 })));
    await redis.del('lock:b');
    await redis.hset('lock:b', 'not', 'a lock');
    expect(await aborted(held[1]!.signal)).toMatchObject({ reason: 'taken' });
    await held[0]!.extend();
    expect(held.map((lock) => lock.isHeld)).toEqual([true, false, true]);
  });

  it('a key that the user has no right to stops no other call of its tick', async () => {
    await redis.acl('SETUSER', 'locks', 'on', '>pw', '+@all', '&*', '~{lock:*', '~lock:mine:*');
    const limited = lockService(redisStore({ connection: `redis://locks:pw@127.0.0.1:${server.port}` }));
    await limited.withLock('mine:0', () => undefined);
    const keys = ['mine:1', 'mine:2', 'theirs', 'mine:3', 'mine:4'];
    const results = await Promise.allSettled(keys.map((key) => limited.withLock(key, () => key)));
    expect(results.map((result) => (result.status === 'fulfilled' ? result.value : 'refused'))).toEqual(
      keys.map((key) => (key === 'theirs' ? 'refused' : key)),
    );
    await limited.close();
    await redis.acl('DELUSER', 'locks');
  });

  it('a key that the user may not use any more costs no other lock its renewal; its own says why it is lost', async () => {
    await redis.acl('SETUSER', 'locks', 'on', '>pw', '+@all', '&*', '~*');
    const limited = lockService(redisStore({ connection: `redis://locks:pw@127.0.0.1:${server.port}` }));
    const held = await Promise.all(['mine:1', 'theirs', 'mine:2'].map((key) => limited.lock(key, { lease: 900 })));
    await redis.acl('SETUSER', 'locks', 'resetkeys', '~{lock:*', '~lock:mine:*');
    expect(await aborted(held[1]!.signal)).toMatchObject({
      reason: 'expired',
      detail: expect.stringMatching(/NOPERM.*Its user lacks rights/),
    });
    expect(held.map((lock) => lock.isHeld)).toEqual([true, false, true]);
    await limited.close();
    await redis.acl('DELUSER', 'locks');
  });

  it('a lock is not taken for gone because the user may not read it any more; it is given back as soon as it may', async () => {
    await redis.acl('SETUSER', 'locks', 'on', '>pw', '+@all', '&*', '~*');
    const store = redisStore({ connection: `redis://locks:pw@127.0.0.1:${server.port}` });
    const limited = lockService(store);
    const [left, held] = [await limited.lock('left'), await limited.lock('held', { lease: 900 })];
    const { token } = await limited.lock('run');
    await redis.acl('SETUSER', 'locks', '-get');
    await expect(store.reserve({ keys: ['run'], token, leaseMs: 900 })).rejects.toThrow(LockUnavailableError);
    expect(await left.unlock()).toBe(true);
    expect(await aborted(held.signal)).toMatchObject({
      reason: 'expired',
      detail: expect.stringMatching(/lacks rights/),
    });
    await redis.acl('SETUSER', 'locks', '+get');
    await until(async () => (await redis.exists('lock:left')) === 0);
    await limited.close();
    await redis.acl('DELUSER', 'locks');
  });

  it.each([
    ['zadd', 'read'],
    ['zadd', { permits: 2 }],
    ['set', 'exclusive'],
  ] as const)('a waiter is not told that it has a lock that the user may not write: -%s, %j', async (right, kind) => {
    await redis.acl('SETUSER', 'locks', 'on', '>pw', '+@all', '&*', '~*');
    const [one, other] = [1, 2].map(() =>
      lockService(redisStore({ connection: `redis://locks:pw@127.0.0.1:${server.port}` })),
    ) as [ClosableLockService, ClosableLockService];
    const held = await one.lock('key');
    const found: number[] = [];
    const mode = typeof kind === 'string' ? { mode: kind } : kind;
    const waits = other.withLock('key', async () => found.push(await redis.exists('lock:key')), {
      ...mode,
      wait: '9s',
    });
    await until(async () => (await redis.exists('{lock:key}:queue')) === 1);
    await redis.acl('SETUSER', 'locks', `-${right}`);
    await held.unlock();
    await other.isLocked('another');
    expect(found).toEqual([]);
    await redis.acl('SETUSER', 'locks', `+${right}`);
    await waits;
    expect(found).toEqual([1]);
    for (const service of [one, other]) await service.close();
    await redis.acl('DELUSER', 'locks');
  });

  it('the fence counter does not go back to the time of the server because the user may not read it', async () => {
    await redis.acl('SETUSER', 'locks', 'on', '>pw', '+@all', '-get', '&*', '~*');
    const ahead = String(3e15);
    await redis.set('{lock:}:fence', ahead);
    const limited = lockService(redisStore({ connection: `redis://locks:pw@127.0.0.1:${server.port}` }));
    await expect(limited.lock('x')).rejects.toMatchObject({ detail: expect.stringMatching(/lacks rights/) });
    expect(await redis.get('{lock:}:fence')).toBe(ahead);
    await limited.close();
    await redis.acl('DELUSER', 'locks');
  });

  it('the fence counter has a name that no key of an app can have', async () => {
    const bare = lockService(redisStore({ connection: server.url, keyPrefix: '' }));
    await expect(bare.lock('{}:fence')).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    await bare.close();
  });

  it.each(['keyPrefix=x:', 'enableOfflineQueue=true&maxRetriesPerRequest=5&lazyConnect=false'])(
    'what stands behind "?" in a URL changes nothing: %s',
    async (query) => {
      const url = `${server.url}/0?${query}`;
      if (query.startsWith('keyPrefix')) {
        expect(() => redisStore({ connection: url })).toThrow(/"connection\.keyPrefix"/);
        return;
      }
      const service = lockService(redisStore({ connection: url }));
      await service.withLock('account:42', async () => expect(await redis.exists('lock:account:42')).toBe(1));
      await service.close();
    },
  );

  it("a free key is its first waiter's, also when another caller asks for several keys in one tick", async () => {
    const there = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
    const first = await there.lock('a');
    const waiting = there.lock('a', { fair: true });
    await until(async () => (await redis.zcard('{lock:a}:queue')) === 1);
    await redis.del('lock:a');
    const [a, b] = await Promise.all([locks.tryLock('a'), locks.tryLock('b')]);
    expect(a).toBeNull();
    expect(b?.isHeld).toBe(true);
    expect((await waiting).isHeld).toBe(true);
    expect(await first.unlock()).toBe(false);
    await there.close();
  });

  it('a lock costs two commands, and two connections for the whole process', async () => {
    const commands = async () =>
      [...(await redis.info('commandstats')).matchAll(/cmdstat_(\w+):calls=(\d+)/g)]
        .filter(([, name]) => name === 'evalsha')
        .reduce((sum, [, , calls]) => sum + Number(calls), 0);
    await locks.withLock('warm', () => undefined);
    const before = await commands();
    for (let i = 0; i < 10; i++) await locks.withLock('account:42', () => undefined);
    expect((await commands()) - before).toBe(20);
    expect(String(await redis.client('LIST')).match(/name=nest-redis-lock/g)).toHaveLength(2);
  });

  it('a user needs no more rights than docs/redis.md gives it', async () => {
    const [, rule] = /^ACL SETUSER locks (.*)$/m.exec(await readFile('docs/redis.md', 'utf8'))!;
    await redis.acl('SETUSER', 'locks', ...rule!.split(' '));
    const limited = lockService(redisStore({ connection: `redis://locks:password@127.0.0.1:${server.port}` }));
    await limited.withLock(['a', 'b'], async (lock) => {
      await lock.extend();
      expect(await limited.isLocked('a')).toBe(true);
    });
    for (const terms of [{ mode: 'read' }, { permits: 2 }] as const) {
      const [one, other] = [await limited.lock('a', terms), await limited.lock('a', terms)];
      const next = limited.lock('a');
      next.catch(() => undefined);
      await one.extend();
      expect((await limited.inspect('a'))?.holders.map(({ fence }) => fence).sort()).toEqual([one.fence, other.fence]);
      await Promise.all([one.unlock(), other.unlock()]);
      expect(await limited.forceUnlock('a')).toBe(true);
      await (await next).unlock();
    }
    expect(await limited.forceUnlock('a')).toBe(false);
    expect((await limited.list()).unreached).toEqual([]);
    await limited.close();
    await redis.acl('DELUSER', 'locks');
  });

  it('a renewal never moves the end of a lease nearer, so a lost reply can not make two holders', async () => {
    const lock = await locks.lock('account:42', { lease: '20s' });
    await lock.extend(200);
    expect(await redis.pttl('lock:account:42')).toBeGreaterThan(10_000);
    expect(lock.remaining()).toBeGreaterThan(10_000);
  });

  it('a lock that was unlocked is not renewed', async () => {
    const lock = await locks.lock('account:42', { lease: 150 });
    await lock.unlock();
    await redis.set('lock:account:42', lock.token, 'PX', 400);
    const kept = await locks.lock('other', { lease: 150 });
    await kept.extend(100);
    let last = await redis.pttl('lock:account:42');
    while (last > 0) {
      const next = await redis.pttl('lock:account:42');
      expect(next).toBeLessThanOrEqual(last);
      last = next;
    }
  });

  it('calls go on under the fake timers of a test, and those of the next test, too', async () => {
    await locks.withLock('warm up', () => undefined);
    jest.useFakeTimers();
    const both = await Promise.all(['a', 'b'].map((key) => locks.withLock(key, () => key)));
    jest.useRealTimers();
    expect([...both, await locks.withLock('c', () => 'c')]).toEqual(['a', 'b', 'c']);
  });

  it('a key is free when it is released, also while Redis is out of memory', async () => {
    const lock = await locks.lock('account:42');
    await redis.config('SET', 'maxmemory', 1);
    try {
      // After this, and what is done about it, it is time to bring the note of the last fence up.
      await expect(locks.tryLock('other')).rejects.toHaveProperty('detail', expect.stringMatching(/OOM/));
      await locks.isLocked('other');
      expect(await lock.unlock()).toBe(true);
      expect(await redis.exists('lock:account:42')).toBe(0);
    } finally {
      await redis.config('SET', 'maxmemory', 0);
    }
  });

  it('a key goes to its waiter at once when it is released, also while Redis is out of memory', async () => {
    const lock = await locks.lock('account:42');
    const there = lockService(redisStore({ connection: server.url }), { shutdownGrace: 0 });
    try {
      const next = there.lock('account:42');
      await until(async () => (await redis.zcard('{lock:account:42}:queue')) === 1);
      await redis.config('SET', 'maxmemory', 1);
      expect(await lock.unlock()).toBe(true);
      const holder = await redis.get('lock:account:42');
      expect(holder).toBe((await next).token);
    } finally {
      await redis.config('SET', 'maxmemory', 0);
      await there.close();
    }
  });

  it('a lock is renewed while Redis is out of memory, shared or not, whatever is renewed with it', async () => {
    const lease = 600;
    const held = await Promise.all([
      ...[1, 2, 3].map((number) => locks.lock(`alone:${number}`, { lease })),
      ...['read', 'read'].map((mode) => locks.lock('shared', { mode: mode as 'read', lease })),
      locks.lock('permit', { permits: 3, lease }),
    ]);
    await redis.config('SET', 'maxmemory', 1);
    try {
      // Without renewals the locks would end in this time.
      await sleep(2 * lease);
      expect(held.map(({ isHeld }) => isHeld)).toEqual(held.map(() => true));
      for (const lock of held) expect(await lock.unlock()).toBe(true);
    } finally {
      await redis.config('SET', 'maxmemory', 0);
    }
  });

  it('many locks are renewed in few commands', async () => {
    const held = await Promise.all(
      Array.from({ length: 300 }, (_, number) => locks.lock(`many:${number}`, { lease: 1500 })),
    );
    const renewals: string[][] = [];
    const monitor = await redis.monitor();
    const twice = new Promise<void>((resolve) =>
      monitor.on('monitor', (_time: string, args: string[]) => {
        if (args[0] !== 'EVALSHA' || Number(args[2]) < 2) return;
        renewals.push(args);
        if (renewals.reduce((keys, one) => keys + Number(one[2]), 0) >= 600) resolve();
      }),
    );
    await twice;
    monitor.disconnect();
    expect(renewals.length).toBeLessThanOrEqual(40);
    expect(held.every((lock) => lock.isHeld)).toBe(true);
  });
});
