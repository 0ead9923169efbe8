import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError, type Lock, type RedisLockModuleOptions } from 'nest-redis-lock';
import { standStill, turn, until } from '../support/deferred.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type Wire, type TcpProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';

const COMMAND_TIMEOUT_MS = 400;
const NOTE = '{lock:}:fence';

describe('Late and lost messages', () => {
  let server: RedisServer;
  let redis: Redis;
  let proxy: TcpProxy;
  /** Reaches Redis through the proxy, on these two connections. */
  let here: ClosableLockService;
  let commands: Wire;
  let subscription: Wire;
  let hereToken: string;
  let there: ClosableLockService;
  /** What is left open by a test, whether it fails or not. */
  const open: (() => unknown)[] = [];

  const serviceOn = (
    connection: RedisLockModuleOptions['connection'],
    commandTimeout = COMMAND_TIMEOUT_MS,
  ): ClosableLockService => {
    const service = lockService(redisStore({ connection, commandTimeout }), {
      lease: '20s',
      wait: '20s',
      shutdownGrace: 0,
    });
    open.push(() => service.close());
    return service;
  };

  withRedis((one) => ({ server, redis } = one));

  beforeEach(async () => {
    proxy = await startProxy(server.port);
    here = serviceOn(proxy.url);
    there = serviceOn(server.url);
    // On a busy machine, to connect may take longer than the command time-out.
    await until(() =>
      here
        .isLocked('warm up')
        .then(() => true)
        .catch(() => false),
    );
    hereToken = await here.withLock('warm up', ({ token }) => token);
    await until(async () => (await listeners()) === 1);
    [commands, subscription] = proxy.wires as [Wire, Wire];
  });

  afterEach(async () => {
    proxy.welcome();
    await Promise.all(open.splice(0).map((close) => close()));
    await proxy.stop();
  });

  /** How many connections Redis has on which `here` hears of its turn. */
  const listeners = async () =>
    (await redis.pubsub('NUMSUB', `{lock:}:wake:${hereToken.slice(0, hereToken.lastIndexOf('.'))}`))[1];
  const waiters = (key: string, count: number) =>
    until(async () => (await redis.zcard(`{lock:${key}}:queue`)) === count);
  const free = (key: string) => until(async () => (await redis.exists(`lock:${key}`)) === 0);

  describe('to a process that waits', () => {
    it('a waiter never enters on a grant that was over before the message came', async () => {
      await redis.mset('lock:a', 'theirs', 'lock:other', 'theirs');
      let entered = false;
      here.lock('a').then(
        () => (entered = true),
        () => undefined,
      );
      const other = here.lock('other');
      await Promise.all([waiters('a', 1), waiters('other', 1)]);
      subscription.replies.hold();
      await there.forceUnlock('a');
      await redis.set('lock:a', 'theirs again');
      await waiters('a', 1); // it was just told that the key is held
      subscription.replies.release();
      await there.forceUnlock('other');
      await other; // so it has read the message about "a", too
      await turn();
      expect(entered).toBe(false);
    });

    it('a process notices that its subscription went silent, and subscribes again', async () => {
      const first = await there.lock('a');
      const call = here.lock('a');
      await waiters('a', 1);
      subscription.replies.hold();
      subscription.requests.hold();
      await first.unlock();
      await call;
      await until(() => proxy.wires.length === 3);
    });

    it('a waiter whose process died is passed over, though another client listens to all channels', async () => {
      const debug = new Redis(server.url);
      open.push(() => debug.disconnect());
      await debug.psubscribe('*');
      const first = await there.lock('a');
      here.lock('a').catch(() => undefined);
      await waiters('a', 1);
      proxy.refuse();
      await until(async () => (await listeners()) === 0);
      await first.unlock();
      expect(await redis.exists('lock:a')).toBe(0);
    });

    it('a waiter that was cut off and gave up leaves the queue when its connection is back', async () => {
      await there.lock('a');
      const call = expect(here.lock('a')).rejects.toBeInstanceOf(LockUnavailableError);
      await waiters('a', 1);
      await here.isLocked('a'); // so it has read that it is queued
      proxy.refuse();
      await call;
      expect(await redis.zcard('{lock:a}:queue')).toBe(1);
      proxy.welcome();
      await waiters('a', 0);
    });

    it('a process keeps trying to release a lock that no caller waits for, when the first try fails', async () => {
      const first = await there.lock('a');
      // A first copy of its "queue" command, long after the one that was answered.
      await redis.zadd('{lock:a}:queue', 1, `${hereToken} 20000 exclusive`);
      await redis.zadd('{lock:a}:alive', Date.now() + 5000, hereToken);
      commands.requests.hold();
      const tried = commands.requests.nextHeld();
      await first.unlock();
      await tried;
      expect(await redis.get('lock:a')).toBe(hereToken);
      await free('a');
    });

    it('a waiter for two keys keeps no later one once it has lost the first', async () => {
      const third = serviceOn(server.url);
      const b = await third.lock('b');
      const mine = here.lock(['a', 'b']);
      await waiters('b', 1);
      const theirs = there.lock(['a', 'b']);
      await waiters('a', 1);
      await third.forceUnlock('a');
      await waiters('b', 2);
      await b.unlock();
      await (await theirs).unlock();
      await (await mine).unlock();
    });

    it('a waiter whose user has no rights on channels gets the key all the same', async () => {
      await redis.acl('SETUSER', 'quiet', 'on', '>password', '~*', '+@all', 'resetchannels');
      const url = `redis://quiet:password@127.0.0.1:${server.port}`;
      const [one, two] = [serviceOn(url), serviceOn(url)];
      const first = await one.lock('a');
      const call = two.lock('a');
      await waiters('a', 1);
      await first.unlock();
      expect(await redis.get('lock:a')).not.toBe(first.token);
      expect((await call).isHeld).toBe(true);
    });
  });

  describe('of a command', () => {
    it('a command that is sent again to a server that knows less brings a larger fence all the same', async () => {
      const older = await redis.get(NOTE);
      const before = await here.withLock('a', ({ fence }) => fence);
      commands.requests.hold();
      const sent = commands.requests.nextHeld();
      const call = here.withLock('a', ({ fence }) => fence);
      await sent;
      // What a replica has that takes over before it was told everything.
      await redis.set(NOTE, older!, 'KEEPTTL');
      await redis.script('FLUSH');
      proxy.cut();
      expect(await call).toBeGreaterThan(before);
    });

    it('a command whose first copy arrives after its lock was released keeps the key from nobody', async () => {
      commands.requests.hold();
      const sent = commands.requests.nextHeld();
      const call = here.withLock('a', () => 'done');
      await sent;
      commands.loseClient();
      expect(await call).toBe('done');
      const note = await redis.get(NOTE);
      commands.requests.release();
      await until(async () => (await redis.get(NOTE)) !== note);
      await free('a');
    });

    it('a command whose first copy arrives after its waiter is through keeps the key from nobody', async () => {
      const held = await there.lock('a');
      commands.requests.hold();
      const sent = commands.requests.nextHeld();
      const call = here.withLock('a', () => 'done');
      await sent;
      commands.loseClient();
      await waiters('a', 1);
      await held.unlock();
      expect(await call).toBe('done');
      await free('a');
      const note = await redis.get(NOTE);
      commands.requests.release();
      await until(async () => (await redis.get(NOTE)) !== note);
      await free('a');
    });

    describe('with a late first copy', () => {
      /**
       * Sends what the work asks for twice: the first copy is kept back until the answer of this is called, which
       * resolves when it has arrived.
       */
      const twice = async (work: () => unknown, saying: string): Promise<() => Promise<void>> => {
        const wire = proxy.wires.filter(({ isOpen, subscribes }) => isOpen && !subscribes).at(-1)!;
        wire.requests.hold();
        const sent = wire.requests.nextHeld();
        const done = work();
        await sent;
        wire.loseClient();
        await done;
        return async () => {
          const monitor = await redis.monitor();
          open.push(() => monitor.disconnect());
          const arrived = new Promise<void>((resolve) =>
            monitor.on(
              'monitor',
              (_time: string, args: string[]) => args.some((text) => text.startsWith(saying)) && resolve(),
            ),
          );
          wire.requests.release();
          await arrived;
        };
      };
      const read = { mode: 'read', wait: 0 } as const;
      const write = { mode: 'write' } as const;

      it('a late copy that ends a nested writer lets nobody in beside the next one', async () => {
        await here.withLock(
          'a',
          async () => {
            const first = await here.lock('a', write);
            const late = await twice(async () => {
              await first.unlock();
              // It waits for the answer.
              await (await here.lock('a', write)).unlock();
            }, 'downgrade');
            const second = await here.lock('a', write);
            await late();
            expect(await there.tryLock('a', read)).toBeNull();
            expect(second.isHeld).toBe(true);
            await second.unlock();
          },
          read,
        );
      });

      it('a late copy that begins a nested writer keeps nobody out after its end', async () => {
        await here.withLock(
          'a',
          async (lock) => {
            const late = await twice(async () => (await here.lock('a', write)).unlock(), 'upgrade');
            const beside = await there.lock('a', { ...read, wait: '2s' });
            await beside.unlock();
            await late();
            expect((await there.tryLock('a', read))?.isHeld).toBe(true);
            expect(lock.isHeld).toBe(true);
          },
          read,
        );
      });

      it('a late copy that begins a refused nested writer keeps nobody out when the readers have ended', async () => {
        await here.withLock(
          'a',
          async () => {
            const beside = (await there.tryLock('a', read))!;
            const late = await twice(() => here.lock('a', write).catch(() => undefined), 'upgrade');
            await beside.unlock();
            await late();
            expect((await there.tryLock('a', read))?.isHeld).toBe(true);
          },
          read,
        );
      });

      it('a late copy of a downgrade lets nobody in beside a nested writer', async () => {
        await here.withLock('a', async (lock) => {
          const late = await twice(() => lock.downgrade(), 'downgrade');
          await here.withLock(
            'a',
            async () => {
              await late();
              expect(await there.tryLock('a', read)).toBeNull();
            },
            write,
          );
        });
      });

      it.each(['read', 'exclusive'] as const)(
        'a late copy of a renewal keeps the key no longer than it must stay after the release: %s',
        async (mode) => {
          const lock = await here.lock('a', { mode, atLeast: '2s' });
          const late = await twice(() => lock.extend('19s'), 'lock:a');
          await lock.unlock();
          await late();
          expect(await redis.pttl('lock:a')).toBeLessThanOrEqual(2000);
        },
      );

      it('a late copy of an acquire keeps the key no longer than it must stay after the release', async () => {
        let lock: Lock | undefined;
        const late = await twice(async () => (lock = await here.lock('a', { atLeast: '1s' })), 'lock:a');
        await lock!.unlock();
        await late();
        expect(await redis.pttl('lock:a')).toBeLessThanOrEqual(1000);
        await free('a');
        await waiters('a', 0);
      });
    });

    it('a command that is in flight twice when it fails keeps the key from nobody', async () => {
      // A busy machine may take long to connect again, and the call must not be over before that.
      const patient = serviceOn(proxy.url, 5 * COMMAND_TIMEOUT_MS);
      await patient.withLock('warm up', () => undefined);
      proxy.holdRequests((chunk) => chunk.includes('\r\ntry\r\n'));
      const call = expect(patient.lock('a', { wait: 0 })).rejects.toBeInstanceOf(LockUnavailableError);
      const copyBeside = (other?: Wire) => proxy.wires.find((wire) => wire !== other && wire.requests.keepsBack);
      await until(() => copyBeside() !== undefined);
      const first = copyBeside()!;
      first.loseClient();
      await until(() => copyBeside(first) !== undefined);
      const again = copyBeside(first)!;
      again.outliveClient();
      const copies = [first, again];
      await call;
      for (const { requests } of copies) {
        const note = await redis.get(NOTE);
        requests.release();
        await until(async () => (await redis.get(NOTE)) !== note);
        await free('a');
      }
    });

    it('what a command acquired that has failed is released when its reply comes, and not some time later', async () => {
      // So no retry is ever due.
      jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
      try {
        const timeless = serviceOn(proxy.url);
        await timeless.isLocked('a');
        const { replies } = proxy.wires.at(-1)!;
        replies.hold();
        const replied = replies.nextHeld();
        const call = expect(timeless.tryLock('a')).rejects.toBeInstanceOf(LockUnavailableError);
        await replied;
        await jest.advanceTimersByTimeAsync(COMMAND_TIMEOUT_MS);
        await call;
        expect(await redis.exists('lock:a')).toBe(1);
        const released = replies.nextHeld();
        replies.release();
        replies.hold();
        await released;
        expect(await redis.exists('lock:a')).toBe(0);
        replies.release();
        await timeless.close();
      } finally {
        jest.useRealTimers();
      }
    });

    it('a command whose reply came while this process was busy has not timed out', async () => {
      await there.withLock('warm up', () => undefined);
      process.kill(server.pid, 'SIGSTOP');
      const call = there.lock('a');
      await turn(); // the command is under way
      process.kill(server.pid, 'SIGCONT');
      standStill(1.5 * COMMAND_TIMEOUT_MS);
      expect((await call).isHeld).toBe(true);
    });

    it('a command that fails because its queue was overwritten affects no other of its tick', async () => {
      await redis.mset('lock:bad', 'theirs', '{lock:bad}:queue', 'not ours');
      const outcomes = await Promise.allSettled(['one', 'bad', 'two'].map((key) => here.lock(key)));
      expect(outcomes.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled']);
    });

    it('a command that Redis refuses for one of its keys leaves the others free at once', async () => {
      await redis.hset('lock:b', 'not', 'a lock');
      await expect(here.lock(['a', 'b'])).rejects.toBeInstanceOf(LockUnavailableError);
      await expect(here.withLock('a', () => 'free', { wait: 0 })).resolves.toBe('free');
    });

    it('a command that fails for one of its keys is done for the others, and for their waiters', async () => {
      for (const bad of ['a', 'b', 'c']) {
        const held = await here.lock(['a', 'b', 'c']);
        const others = ['a', 'b', 'c'].filter((key) => key !== bad);
        const waiting = Promise.all(others.map((key) => there.lock(key)));
        await Promise.all(others.map((key) => waiters(key, 1)));
        await redis.lpush(`{lock:${bad}}:queue`, 'not ours');
        await held.unlock();
        await Promise.all((await waiting).map((lock) => lock.unlock()));
        await redis.del(`{lock:${bad}}:queue`);
        await free(bad);
      }
    });

    it('a command that waits for a connection fails when the app closes', async () => {
      const early = serviceOn('redis://127.0.0.1:1');
      const call = expect(early.isLocked('a')).rejects.toHaveProperty(
        'detail',
        expect.stringMatching(/has been closed/),
      );
      await early.close();
      await call;
    });
  });

  describe('on a borrowed client', () => {
    let client: Redis;
    let locks: ClosableLockService;
    let wire: Wire;

    beforeEach(async () => {
      client = new Redis(proxy.url, { retryStrategy: () => 10 });
      client.on('error', () => undefined);
      locks = serviceOn(client);
      await locks.isLocked('warm up');
      wire = proxy.wires.at(-1)!;
    });

    afterEach(async () => {
      await locks.close();
      client.disconnect();
    });

    it('a borrowed client may be instrumented by code that detaches the callbacks of commands', async () => {
      const send = client.sendCommand.bind(client);
      client.sendCommand = (command) => {
        const { resolve, reject } = command;
        command.resolve = (reply) => resolve(reply);
        command.reject = (error) => reject(error);
        return send(command);
      };
      await expect(locks.withLock('a', () => 'done')).resolves.toBe('done');
      await redis.hset('lock:b', 'not', 'a lock');
      await expect(locks.lock('b')).rejects.toBeInstanceOf(LockUnavailableError);
    });

    it('a borrowed client grants nothing in the middle of a transaction of its own', async () => {
      await redis.set('lock:a', 'theirs', 'PX', 20_000);
      await client.multi({ pipeline: false });
      let ran = false;
      await expect(locks.withLock('a', () => (ran = true), { wait: 0 })).rejects.toBeInstanceOf(LockUnavailableError);
      expect(ran).toBe(false);
      await client.discard();
    });

    it('a borrowed client does not resend a command that has failed', async () => {
      const monitor = await redis.monitor();
      open.push(() => monitor.disconnect());
      const seen: string[] = [];
      const givenBack = new Promise<void>((resolve) =>
        monitor.on('monitor', (_time: string, args: string[]) => {
          seen.push(...args);
          if (args.includes('cancel')) resolve();
        }),
      );
      wire.requests.hold();
      await expect(locks.lock('a', { wait: 0 })).rejects.toBeInstanceOf(LockUnavailableError);
      proxy.cut();
      await givenBack;
      expect(seen).not.toContain('try');
    });

    it('a borrowed client leaves no call open when the app closes', async () => {
      wire.requests.hold();
      const call = expect(locks.isLocked('a')).rejects.toHaveProperty(
        'detail',
        expect.stringMatching(/has been closed/),
      );
      await locks.close();
      await call;
    });
  });
});
