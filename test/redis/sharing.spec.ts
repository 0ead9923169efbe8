import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import type { Redis } from 'ioredis';
import { LockKeyError, type Lock, type RedisLockModuleOptions } from 'nest-redis-lock';
import { Orphans } from '../../lib/redis/locks/orphans.js';
import { aborted, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { waitSilently } from '../support/stores/silent-waiter.js';
import { withRedis } from '../support/redis/with-redis.js';

describe('Shared locks in Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  let here: ClosableLockService;
  let there: ClosableLockService;
  /** What is left open by a test, whether it fails or not. */
  const open: (() => unknown)[] = [];

  const read = { mode: 'read' } as const;

  const service = (options: RedisLockModuleOptions = {}): ClosableLockService => {
    const made = lockService(redisStore({ connection: server.url, ...options }), {
      lease: '20s',
      wait: '20s',
      shutdownGrace: 0,
    });
    open.push(() => made.close());
    return made;
  };

  withRedis((one) => ({ server, redis } = one));

  beforeEach(() => {
    here = service();
    there = service();
  });

  afterEach(async () => {
    await Promise.all(open.splice(0).map((close) => close()));
  });

  const waiters = (key: string, count: number) =>
    until(async () => (await redis.zcard(`{lock:${key}}:queue`)) === count);
  const connections = async () => String(await redis.client('LIST')).match(/^id=\d+(?= .* name=nest-redis-lock )/gm)!;
  const wakeChannels = (source = '*') => redis.pubsub('CHANNELS', `{lock:}:wake:${source}`) as Promise<string[]>;

  describe('a writer whose upgrade the server has forgotten, as a failover or a restart can make it,', () => {
    /** Ends when the writer does, with what it threw. */
    const forgottenWriter = (lease: number, work: (writer: Lock) => Promise<unknown>): Promise<unknown> =>
      here
        .withLock(
          'a',
          () =>
            here.withLock(
              'a',
              async (writer) => {
                await redis.set('lock:a', 'nest-redis-lock:read', 'KEEPTTL');
                await work(writer);
              },
              { mode: 'write' },
            ),
          { ...read, lease },
        )
        .catch((error: unknown) => error);

    it('is lost with the next renewal: it is a reader there, and other readers enter', async () => {
      const reason = forgottenWriter(600, ({ signal }) => aborted(signal));
      expect(await reason).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
    });

    it('is lost when the connection is made anew', async () => {
      const reason = forgottenWriter(20_000, async ({ signal }) => {
        await redis.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await aborted(signal);
      });
      expect(await reason).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
    });

    it('can not extend its lease', async () => {
      expect(await forgottenWriter(20_000, (writer) => writer.extend())).toMatchObject({ reason: 'taken' });
    });
  });

  it('a writer that waits in the process of a downgraded lock is before the readers that come later', async () => {
    const held = await here.lock('a', { mode: 'write' });
    const order: string[] = [];
    const entered = async (locks: ClosableLockService, mode: 'read' | 'write') => {
      await using lock = await locks.lock('a', { mode });
      order.push(lock.mode);
    };
    const writing = entered(here, 'write');
    await held.downgrade();
    await waiters('a', 1);
    const reading = entered(there, 'read');
    await waiters('a', 2);
    await held.unlock();
    await Promise.all([writing, reading]);
    expect(order).toEqual(['write', 'read']);
  });

  describe('dead waiters', () => {
    it('a waiter whose process died is passed over at once by those who may share the key', async () => {
      await here.lock('a', read);
      const dying = redisStore({ connection: server.url });
      open.push(() => dying.close());
      await waitSilently(dying, 'a', 'exclusive');
      expect(await wakeChannels('silent:*')).toHaveLength(1);
      await dying.close();
      await until(async () => (await wakeChannels('silent:*')).length === 0);
      expect(await there.tryLock('a', read)).not.toBeNull();
    });

    it('a waiter is dropped when it does not count as alive any more, though it could not hear', async () => {
      await here.lock('a', read);
      await redis.zadd('{lock:a}:queue', 1, 'dead:1:x.1 20000 exclusive');
      const deaf = 0.5;
      await redis.zadd('{lock:a}:alive', Date.now() + 20_000 + deaf, 'dead:1:x.1');
      expect(await there.tryLock('a', read)).toBeNull();
      await redis.zadd('{lock:a}:alive', Date.now() - 1000 + deaf, 'dead:1:x.1');
      expect(await there.tryLock('a', read)).not.toBeNull();
      await waiters('a', 0);
    });
  });

  describe('names', () => {
    it('no two keys have one name: a key that is nothing but the tag of another one is refused', async () => {
      const bare = service({ keyPrefix: '' });
      await bare.lock('a', read);
      await expect(bare.lock('{a}', read)).rejects.toBeInstanceOf(LockKeyError);
      const both = await Promise.allSettled(['a}', '{a}}'].map((key) => bare.lock(key, read)));
      expect(both.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      const braced = service({ keyPrefix: '{' });
      await expect(braced.lock('a}', read)).rejects.toBeInstanceOf(LockKeyError);
      await expect(here.lock('{a}', read)).resolves.toMatchObject({ key: '{a}' });
    });
  });

  describe('foreign data', () => {
    it('a foreign message on the channel of a process does it no harm', async () => {
      const first = await here.lock('a');
      const next = there.lock('a', { label: 'still hears' });
      await waiters('a', 1);
      const before = await connections();
      const givenUp = jest.spyOn(Orphans.prototype, 'add');
      for (const channel of await wakeChannels()) {
        for (const text of [
          'granted x 1 read/% 1 0 lock:a',
          'granted x 1 read/%E0%A4%A 1 0 lock:a',
          'granted ü.1 1 exclusive 1 0 lock:a',
          'granted x 1 exclusive 1 0 lock:{a}:queue',
          'granted x 1 exclusive 1 0 other:a',
          `granted x ${'9'.repeat(400)} exclusive 1 0 lock:a`,
          'described 1 {',
          '',
        ])
          await redis.publish(channel, text);
      }
      await first.unlock();
      expect((await next).isHeld).toBe(true);
      expect(await (await next).unlock()).toBe(true);
      expect(await connections()).toEqual(expect.arrayContaining(before));
      expect(givenUp).not.toHaveBeenCalled();
      givenUp.mockRestore();
    });

    it('a foreign entry in the queue of a key is shown as it is', async () => {
      const lock = await here.lock('a');
      await redis.zadd('{lock:a}:queue', 1, 'x:1:y.1 20000 read/50%');
      await redis.zadd('{lock:a}:alive', Date.now() + 20_000, 'x:1:y.1');
      expect(await here.inspect('a')).toMatchObject({
        holder: { token: lock.token },
        waiters: [{ token: 'x:1:y.1', mode: 'read', label: '50%' }],
      });
    });
  });
});
