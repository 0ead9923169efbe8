import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockLostError, LockUnavailableError } from 'nest-redis-lock';
import { subscriberOf } from '../../lib/redis/connection/further-client.js';
import { redisClient } from '../../lib/redis/connection/redis-client.js';
import { diagnosis } from '../../lib/redis/connection/redis-diagnosis.js';
import { aborted, turn, until } from '../support/deferred.js';
import { startFakeSentinel } from '../support/redis/fake-sentinel.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';

const COMMAND_TIMEOUT_MS = 300;

/** How late a busy machine may be; callers wait much longer than this when nothing ends their wait. */
const BUSY_MS = 2000;

describe('When Redis fails', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let redis: Redis;
  let locks: ClosableLockService;

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startProxy(server.port);
    redis = new Redis(server.url);
    redis.on('error', () => undefined);
    locks = serviceOn(proxy.url);
    await until(() => locks.withLock('warm up', () => true).catch(() => false));
  });

  afterEach(async () => {
    await locks.close();
    redis.disconnect();
    await proxy.stop();
    await server.stop();
  });

  const serviceOn = (connection: string | Redis) =>
    lockService(redisStore({ connection, commandTimeout: COMMAND_TIMEOUT_MS }), { lease: '10s', shutdownGrace: 0 });

  async function unavailable(call: Promise<unknown>): Promise<LockUnavailableError> {
    const startedAt = performance.now();
    const error: unknown = await call.catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect(performance.now() - startedAt).toBeLessThan(COMMAND_TIMEOUT_MS + BUSY_MS);
    return error as LockUnavailableError;
  }

  it('a caller that tries again at once lets timers run: calls that fail fast do not stop the process', async () => {
    proxy.dropReplies();
    await unavailable(locks.lock('a'));
    let [isTimeUp, tries] = [false, 0];
    // The timer itself is under test: the callers must let it run.
    setTimeout(() => (isTimeUp = true), 30);
    const caller = async (key: string) => {
      for (; !isTimeUp && tries < 20_000; tries++) await locks.withLock(key, () => undefined).catch(() => undefined);
    };
    await Promise.all([caller('a'), caller('b')]);
    expect(tries).toBeLessThan(20_000);
    proxy.heal();
  });

  it('a connection that is reset while it is in use is no outage: the client makes another one', async () => {
    const log: string[] = [];
    const note = (what: string) => (_server: string, error?: Error) => log.push(`${what} ${error?.message}`);
    const store = redisStore({ connection: proxy.url }, { down: note('down'), up: note('up') });
    const watched = lockService(store, { lease: '10s', shutdownGrace: 0 });
    const lock = await watched.lock('a');
    for (let times = 0; times < 5; times++) {
      proxy.refuseRudely();
      // One more write, to a connection that is gone.
      const call = watched.withLock('b', () => 'done');
      proxy.welcome();
      expect(await call).toBe('done');
    }
    expect(await lock.unlock()).toBe(true);
    expect(log).toEqual([]);
    await watched.close();
  });

  it('a client without a ready check connects again after connections that end at once', async () => {
    const first = redisClient({ host: '127.0.0.1', port: proxy.port, enableReadyCheck: false }, COMMAND_TIMEOUT_MS);
    for (const client of [first.redis, subscriberOf(first, COMMAND_TIMEOUT_MS)]) {
      let connections = 0;
      client.on('connect', () => connections++).on('error', () => undefined);
      await client.connect();
      proxy.refuse();
      await until(() => connections === 3);
      proxy.welcome();
      await until(async () => (await client.ping().catch(() => undefined)) === 'PONG');
      client.disconnect();
    }
  });

  it('a server that makes connections, and runs no scripts for a while, is one outage, and calls fail fast', async () => {
    const log: string[] = [];
    const note = (what: string) => () => log.push(what);
    const options = { connection: server.url, commandTimeout: COMMAND_TIMEOUT_MS };
    const watched = lockService(redisStore(options, { down: note('down'), up: note('up') }), { shutdownGrace: 0 });
    await watched.withLock('a', () => undefined);
    const connections = async () => Number(/total_connections_received:(\d+)/.exec(await redis.info('stats'))![1]);
    // A failover of Redis does that, and a shutdown that waits for replicas.
    await redis.call('CLIENT', 'PAUSE', '60000', 'WRITE');
    const before = await connections();
    await unavailable(watched.lock('a'));
    await until(async () => (await connections()) >= before + 4);
    expect(log).toEqual(['down']);
    const probe = unavailable(watched.lock('a'));
    await turn();
    expect((await unavailable(watched.lock('b'))).detail).toContain('another call is probing it now');
    await probe;
    await redis.client('UNPAUSE');
    await until(() => log.length > 1);
    expect(log).toEqual(['down', 'up']);
    expect(await watched.withLock('b', () => 'done')).toBe('done');
    await watched.close();
  });

  it('a server that dies while it is in use is told as one that does not run', async () => {
    const log: string[] = [];
    const down = (_server: string, error: Error) => log.push(diagnosis(error));
    const store = redisStore({ connection: server.url, commandTimeout: COMMAND_TIMEOUT_MS }, { down });
    const watched = lockService(store, { shutdownGrace: 0 });
    await watched.withLock('a', () => undefined);
    let isOver = false;
    const caller = async (key: string) => {
      while (!isOver) await watched.withLock(key, () => undefined).catch(() => (isOver = true));
    };
    const callers = Array.from({ length: 50 }, (_, nth) => caller(`a${nth}`));
    process.kill(server.pid, 'SIGKILL');
    await Promise.all(callers);
    expect(log).toEqual([expect.stringMatching(/ECONNREFUSED.*Check that it runs/)]);
    await watched.close();
  });

  it('a lock whose grant was lost on the way is released in the background, long before its lease ends', async () => {
    proxy.dropReplies();
    const call = unavailable(locks.lock('account:1'));
    await until(async () => (await redis.exists('lock:account:1')) === 1);
    await call;
    proxy.heal();
    proxy.cut();
    await until(async () => (await redis.exists('lock:account:1')) === 0);
    expect((await locks.lock('account:1')).isHeld).toBe(true);
  });

  it('a waiter whose reply was lost leaves the queue as soon as Redis replies, whatever its lease', async () => {
    await redis.set('lock:account:1', 'somebody else');
    proxy.dropReplies();
    await unavailable(locks.lock('account:1', { lease: 100 }));
    // The lease is over when this one has failed too.
    await unavailable(locks.isLocked('account:2'));
    expect(await redis.zcard('{lock:account:1}:queue')).toBe(1);
    proxy.heal();
    proxy.cut();
    await until(async () => (await redis.zcard('{lock:account:1}:queue')) === 0);
  });

  it('a call in flight when the connection drops is sent again, and neither blocks itself nor looks lost', async () => {
    proxy.dropReplies();
    const call = locks.lock('account:1', { wait: 0 });
    await until(async () => (await redis.exists('lock:account:1')) === 1);
    proxy.heal();
    proxy.cut();
    const lock = await call;
    expect(await redis.get('lock:account:1')).toBe(lock.token);

    proxy.dropReplies();
    const unlocked = lock.unlock();
    await until(async () => (await redis.exists('lock:account:1')) === 0);
    proxy.heal();
    proxy.cut();
    expect(await unlocked).toBe(true);
    expect(lock.signal.aborted).toBe(false);
  });

  it('an unlock whose reply got lost resolves, and the key is free', async () => {
    const lock = await locks.lock('account:1');
    proxy.dropReplies();
    expect(await lock.unlock()).toBe(true);
    expect(await redis.exists('lock:account:1')).toBe(0);
  });

  it('an unlock that never arrived is repeated when Redis can be reached again', async () => {
    const lock = await locks.lock('account:1');
    proxy.dropRequests();
    await lock.unlock();
    expect(await redis.exists('lock:account:1')).toBe(1);
    proxy.heal();
    proxy.cut();
    await until(async () => (await redis.exists('lock:account:1')) === 0);
  });

  it('a key that must stay after the work does so, whatever its lease, when its unlock never arrived', async () => {
    const lock = await locks.lock('account:1', { lease: '5s', atLeast: '1m' });
    proxy.dropRequests();
    await lock.unlock();
    proxy.heal();
    proxy.cut();
    await until(async () => (await redis.get('lock:account:1')) === `${lock.token} kept`);
    expect(await redis.pttl('lock:account:1')).toBeGreaterThan(50_000);
    expect(await redis.pttl('lock:account:1')).toBeLessThan(60_000);
  });

  it('a key that must stay for a short time is free soon after that when its unlock never arrived', async () => {
    const lock = await locks.lock('account:1', { atLeast: COMMAND_TIMEOUT_MS });
    proxy.dropRequests();
    await lock.unlock();
    proxy.heal();
    proxy.cut();
    await until(async () => (await redis.exists('lock:account:1')) === 0);
  });

  it('a lock that the server forgot is noticed when the connection is back, long before its renewal', async () => {
    const [kept, fixed, lost] = await Promise.all([
      locks.lock('kept', { lease: '30s' }),
      locks.lock('fixed', { lease: '30s', watchdog: false }),
      locks.lock('lost', { lease: '30s' }),
    ]);
    const reason = aborted(lost.signal);
    await redis.del('lock:lost');
    await redis.pexpire('lock:fixed', 20_000);
    proxy.cut();
    expect(await reason).toMatchObject({ reason: 'taken' });
    expect([kept.isHeld, fixed.isHeld]).toEqual([true, true]);
  });

  it('calls fail fast while Redis does not reply, except one probe at a time, and work again later', async () => {
    proxy.dropRequests();
    await unavailable(locks.lock('account:1'));
    let isProbing = true;
    const probe = unavailable(locks.lock('account:1', { fair: true })).finally(() => (isProbing = false));
    const others = await Promise.all(
      Array.from({ length: 50 }, (_, number) => unavailable(locks.lock(`account:${number}`, { fair: true }))),
    );
    expect(isProbing).toBe(true);
    expect(others[0]!.detail).toMatch(/can't be reached \(calls get no reply; another call is probing it now\)/);
    await probe;
    proxy.heal();
    await until(() =>
      locks.lock('account:2', { wait: 0 }).then(
        (lock) => lock.unlock(),
        () => false,
      ),
    );
  });

  it("the work's result survives a release that fails", async () => {
    const value = await locks.withLock('account:1', () => {
      proxy.dropRequests();
      return 'done';
    });
    expect(value).toBe('done');
    const own = new Error('mine');
    proxy.heal();
    proxy.cut();
    await until(() => locks.withLock('account:1', () => true).catch(() => false));
    const failing = locks.withLock('account:2', () => {
      proxy.dropRequests();
      throw own;
    });
    await expect(failing).rejects.toBe(own);
  });

  it('the watchdog keeps trying through errors, and the lock survives a short outage', async () => {
    const lock = await locks.lock('account:1', { lease: 1500 });
    proxy.dropReplies();
    await proxy.nextDroppedReply();
    proxy.heal();
    proxy.cut();
    await until(() => lock.remaining() > 1300);
    expect(lock.isHeld).toBe(true);
    expect(await lock.unlock()).toBe(true);
  });

  it('the signal of a held lock aborts before Redis lets the next holder in, also when Redis hangs', async () => {
    const lock = await locks.lock('account:1', { lease: 600 });
    const expiresAt = performance.now() + (await redis.pttl('lock:account:1'));
    process.kill(server.pid, 'SIGSTOP');
    const reason = await aborted(lock.signal);
    expect(performance.now()).toBeLessThan(expiresAt + 400);
    expect(reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    process.kill(server.pid, 'SIGCONT');
  });

  it('every call settles within the command time-out while Redis hangs, and works again afterwards', async () => {
    process.kill(server.pid, 'SIGSTOP');
    await Promise.all([
      unavailable(locks.lock('account:1')),
      unavailable(locks.tryLock('account:2')),
      unavailable(locks.withLock('account:3', () => 'ran')),
      unavailable(locks.isLocked('account:4')),
      unavailable(locks.forceUnlock('account:5')),
    ]);
    process.kill(server.pid, 'SIGCONT');
    await until(() => locks.withLock('account:1', () => true).catch(() => false));
  });

  /** Callers that have one key in common. */
  const sharing = () =>
    Array.from({ length: 12 }, (_, index) => locks.lock(['hot', `account:${index}`], { wait: 9000 }));

  it('callers of several keys fail together while Redis hangs, though they have only one key in common', async () => {
    process.kill(server.pid, 'SIGSTOP');
    await Promise.all(sharing().map(unavailable));
    process.kill(server.pid, 'SIGCONT');
    await until(() => locks.withLock('hot', () => true).catch(() => false));
  });

  it('callers of several keys fail together while Redis replies too late', async () => {
    const background = setInterval(() => void locks.isLocked('b').catch(() => undefined), 20);
    try {
      proxy.delay(COMMAND_TIMEOUT_MS);
      await unavailable(locks.isLocked('a'));
      await Promise.all(sharing().map(unavailable));
    } finally {
      clearInterval(background);
    }
    proxy.delay(0);
    await until(() => locks.withLock('hot', () => true).catch(() => false));
  }, 15_000);

  it.each([
    ['is out of memory', () => redis.config('SET', 'maxmemory', 1), () => redis.config('SET', 'maxmemory', 0)],
    [
      'refuses writes',
      () => redis.config('SET', 'min-replicas-to-write', 1),
      () => redis.config('SET', 'min-replicas-to-write', 0),
    ],
  ])('callers of several keys fail together while Redis %s: one of them asks', async (_what, begin, end) => {
    await begin();
    const asked = jest.spyOn(Redis.prototype, 'sendCommand');
    try {
      await Promise.all(sharing().map(unavailable));
      // And one gives back what nobody wants.
      expect(asked.mock.calls.filter(([{ name }]) => name === 'evalsha').length).toBeLessThanOrEqual(2);
    } finally {
      asked.mockRestore();
    }
    await end();
    await until(() => locks.withLock('hot', () => true).catch(() => false));
  });

  it('a lock that Redis refuses to renew says so when it is lost', async () => {
    const lock = await locks.lock('a', { lease: 900 });
    try {
      await redis.config('SET', 'min-replicas-to-write', 1);
      await aborted(lock.signal);
      expect(lock.signal.reason).toMatchObject({
        reason: 'expired',
        detail: expect.stringMatching(
          /the last attempt to renew it had failed: Redis at .* refused the command: NOREPLICAS/,
        ),
      });
    } finally {
      await redis.config('SET', 'min-replicas-to-write', 0);
    }
  });

  it('callers of several keys do not fail with one that meets a key which is no lock', async () => {
    await redis.rpush('lock:list', 'no lock');
    const first = unavailable(locks.lock(['hot', 'list']));
    const others = Array.from({ length: 3 }, (_, index) => locks.withLock(['hot', `account:${index}`], () => 'done'));
    await first;
    expect(await Promise.all(others)).toEqual(['done', 'done', 'done']);
    await redis.del('lock:list');
  });

  it.each(['its own', 'a borrowed'] as const)(
    'the library leaves few commands to %s client while Redis hangs with the connection open',
    async (which) => {
      const borrowed = which === 'its own' ? undefined : new Redis(server.url).on('error', () => undefined);
      const calls = borrowed ? serviceOn(borrowed) : locks;
      const sending = jest.spyOn(Redis.prototype, 'sendCommand');
      try {
        await calls.withLock('warm up', () => undefined);
        const script = sending.mock.calls.findIndex(([{ name }]) => name === 'evalsha');
        const client = sending.mock.contexts[script] as Record<'commandQueue' | 'offlineQueue', unknown[]>;
        process.kill(server.pid, 'SIGSTOP');
        // A reply that was under way may still arrive after the first call.
        for (let times = 0; times < 2; times++) await unavailable(calls.isLocked('account:1'));
        for (let round = 0; round < 4; round++)
          await Promise.all(Array.from({ length: 20 }, (_, n) => unavailable(calls.isLocked(`account:${n}`))));
        expect(client.commandQueue.length + client.offlineQueue.length).toBeLessThan(20);
      } finally {
        sending.mockRestore();
        process.kill(server.pid, 'SIGCONT');
        if (borrowed) await calls.close();
        borrowed?.disconnect();
      }
    },
    15_000,
  );

  it('a dead connection is given up once, however many calls fail on it', async () => {
    const disconnect = jest.spyOn(Redis.prototype, 'disconnect');
    process.kill(server.pid, 'SIGSTOP');
    await Promise.all(Array.from({ length: 20 }, (_, n) => unavailable(locks.isLocked(`account:${n}`))));
    expect(disconnect).toHaveBeenCalledTimes(1);
    disconnect.mockRestore();
    process.kill(server.pid, 'SIGCONT');
  });

  it.each([
    ['while the connection is being made', 600, {}],
    ['while the connection is being made, for which there is no time-out', 600, { connectTimeout: 0 }],
    ['right after the connection was made', 1000, {}],
  ])('calls to a Redis far away work again after a reset, though calls give up %s', async (_, commandTimeout, more) => {
    const roundTripMs = 350;
    const connection = { host: '127.0.0.1', port: proxy.port, ...more };
    const far = lockService(redisStore({ connection, commandTimeout }), { shutdownGrace: 0 });
    try {
      await far.isLocked('warm up');
      proxy.delay(roundTripMs / 2);
      proxy.cut();
      const worksAgain = () =>
        far.isLocked('a').then(
          () => true,
          () => false,
        );
      const startedAt = performance.now();
      await until(worksAgain);
      // Two round trips to make the connection, one for the call that gives up, and one for the next.
      expect(performance.now()).toBeLessThan(startedAt + 4 * roundTripMs + BUSY_MS);
    } finally {
      await far.close();
    }
  });

  it('calls fail in time while Redis is down, and work again when it is back', async () => {
    await server.kill();
    const error = await unavailable(locks.withLock('account:1', () => 'ran'));
    expect(error.code).toBe('LOCK_UNAVAILABLE');
    await server.restart();
    await until(() => locks.withLock('account:1', () => true).catch(() => false));
  });

  it('a grant that arrives during the shutdown is released before the connection closes', async () => {
    process.kill(server.pid, 'SIGSTOP');
    const call = expect(locks.lock('account:1')).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/shutting down/),
    );
    await turn(); // the command is under way
    const closed = locks.close();
    process.kill(server.pid, 'SIGCONT');
    await call;
    await closed;
    expect(await redis.exists('lock:account:1')).toBe(0);
  });

  it('a lock that Redis forgot in a restart is lost at the next renewal, and never taken back', async () => {
    const lock = await locks.lock('account:1', { lease: 900 });
    await server.restart();
    expect(await aborted(lock.signal)).toBeInstanceOf(LockLostError);
    expect(await redis.exists('lock:account:1')).toBe(0);
  });

  it('a service can be built while Redis is down; calls say so until it comes up', async () => {
    await server.kill();
    const early = serviceOn(server.url);
    const error = await unavailable(early.lock('account:1'));
    expect(error.detail).toMatch(/Redis at 127\.0\.0\.1:\d+ can't be reached/);
    expect((error.cause as Error).message).toContain('ECONNREFUSED');
    await server.restart();
    await until(() => early.withLock('account:1', () => true).catch(() => false));
    await early.close();
  });
});

describe('A connection through Sentinel', () => {
  it.each([
    ['commands', 'normal'],
    ['messages', 'pubsub'],
  ])(
    '%s that learns of a failover while it asks for the master does not end for good',
    async (_what, type) => {
      const server = await startRedis();
      const redis = new Redis(server.url);
      const sentinel = await startFakeSentinel(server.port);
      const connection = {
        sentinels: [{ host: '127.0.0.1', port: sentinel.port }],
        name: 'main',
        protocol: 2 as const,
      };
      const locks = lockService(redisStore({ connection, commandTimeout: '5s' }), { lease: '10s', shutdownGrace: 0 });
      try {
        const held = await locks.lock('held');
        await until(() => sentinel.subscribers === 2);
        let asked = 0;
        sentinel.beforeAnswer = async () => {
          if (++asked > 1) return;
          sentinel.announce(1);
          await until(() => sentinel.subscribers === 0);
        };
        await redis.call('CLIENT', 'KILL', 'TYPE', type, 'SKIPME', 'yes');
        await until(() => asked > 0);
        expect(await locks.withLock('account:1', () => 'inside')).toBe('inside');
        expect(await held.unlock()).toBe(true);
        await until(async () => (await redis.pubsub('CHANNELS')).length === 1);
      } finally {
        await locks.close();
        redis.disconnect();
        await sentinel.stop();
        await server.stop();
      }
    },
    20_000,
  );

  it('a client asks the next Sentinel when one accepts the connection and says nothing', async () => {
    const server = await startRedis();
    const [hung, sentinel] = [await startFakeSentinel(server.port), await startFakeSentinel(server.port)];
    hung.beforeAnswer = () => new Promise(() => undefined);
    const connection = {
      sentinels: [hung, sentinel].map(({ port }) => ({ host: '127.0.0.1', port })),
      name: 'main',
      protocol: 2 as const,
    };
    const locks = lockService(redisStore({ connection, commandTimeout: 500 }), { shutdownGrace: 0 });
    try {
      await until(() => locks.withLock('a', () => true).catch(() => false));
    } finally {
      await locks.close();
      await Promise.all([hung, sentinel].map((one) => one.stop()));
      await server.stop();
    }
  }, 20_000);
});

describe('A borrowed client that loses its connection', () => {
  let server: RedisServer;
  let proxy: TcpProxy;
  let client: Redis;

  beforeEach(async () => {
    server = await startRedis();
    proxy = await startProxy(server.port);
    client = new Redis(proxy.url, { retryStrategy: () => 10 });
    client.on('error', () => undefined);
  });

  afterEach(async () => {
    client.disconnect();
    await proxy.stop();
    await server.stop();
  });

  it('a borrowed client is left open and unchanged when the app shuts down', async () => {
    await client.ping();
    const listeners = () => client.eventNames().map((name) => [String(name), client.listenerCount(name)]);
    const before = listeners();
    const locks = lockService(redisStore({ connection: client }));
    await locks.withLock('account:1', () => undefined);
    await locks.close();
    expect(client.status).toBe('ready');
    expect(listeners()).toEqual(before);
    expect(await client.ping()).toBe('PONG');
  });

  it('a borrowed client may send an acquire twice: the caller gets the lock, and does not block itself', async () => {
    const locks = lockService(redisStore({ connection: client, commandTimeout: '5s' }), { shutdownGrace: 0 });
    await locks.withLock('warm up', () => undefined);
    proxy.dropReplies();
    const dropped = proxy.nextDroppedReply();
    const call = locks.lock('account:1', { wait: 0 });
    await dropped;
    proxy.heal();
    proxy.cut();
    const lock = await call;
    expect(await client.get('lock:account:1')).toBe(lock.token);
    await locks.close();
  });

  it('a borrowed client is probed by one call at a time while it does not reply; the others fail at once', async () => {
    const timeoutMs = 100;
    const locks = lockService(redisStore({ connection: client, commandTimeout: timeoutMs }), { shutdownGrace: 0 });
    const redis = new Redis(server.url);
    const sent = async () => Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))![1]);
    await until(() => locks.withLock('warm up', () => true).catch(() => false));
    proxy.dropReplies();
    await expect(locks.isLocked('a')).rejects.toBeInstanceOf(LockUnavailableError);

    const [before, startedAt] = [await sent(), performance.now()];
    let [probes, toldAtOnce] = [0, 0];
    const caller = async () => {
      while (performance.now() < startedAt + 10 * timeoutMs || toldAtOnce <= 500) {
        const calledAt = performance.now();
        await expect(locks.isLocked('a')).rejects.toBeInstanceOf(LockUnavailableError);
        if (performance.now() > calledAt + timeoutMs / 2) probes++;
        else toldAtOnce++;
        await turn();
      }
    };
    await Promise.all(Array.from({ length: 50 }, caller));
    const timeouts = (performance.now() - startedAt) / timeoutMs;
    expect(probes).toBeGreaterThan(2);
    expect(toldAtOnce).toBeGreaterThan(500);
    expect(await sent()).toBeLessThanOrEqual(before + Math.ceil(timeouts * 1.1) + 1);

    proxy.heal();
    proxy.cut();
    await until(() => locks.withLock('a', () => true).catch(() => false));
    redis.disconnect();
    await locks.close();
  });

  it('a borrowed client releases a grant that came too late, whatever else fails meanwhile', async () => {
    const locks = lockService(redisStore({ connection: client, commandTimeout: COMMAND_TIMEOUT_MS }), {
      lease: '1m',
      shutdownGrace: 0,
    });
    const redis = new Redis(server.url);
    await until(() => locks.withLock('warm up', () => true).catch(() => false));
    await redis.hset('lock:broken', 'not', 'a lock');
    // The grant may be released before anybody can look. Each grant takes fences.
    const grants = async () => Number(/cmdstat_incrby:calls=(\d+)/.exec(await redis.info('commandstats'))![1]);
    const before = await grants();
    process.kill(server.pid, 'SIGSTOP');
    await expect(locks.lock('account:1')).rejects.toBeInstanceOf(LockUnavailableError);
    process.kill(server.pid, 'SIGCONT');
    await until(async () => (await grants()) > before);
    await until(async () => {
      await locks.lock('broken', { wait: 0 }).catch(() => undefined);
      return (await redis.exists('lock:account:1')) === 0;
    });
    redis.disconnect();
    await locks.close();
  });

  it('a borrowed client may send a release twice: that is no lost lock', async () => {
    const locks = lockService(redisStore({ connection: client, commandTimeout: '5s' }), { shutdownGrace: 0 });
    const lock = await locks.lock('account:1');
    proxy.dropReplies();
    const dropped = proxy.nextDroppedReply();
    const unlocked = lock.unlock();
    await dropped;
    proxy.heal();
    proxy.cut();
    expect(await unlocked).toBe(true);
    await locks.close();
  });

  it('a borrowed client that is lazy is connected by the first call', async () => {
    const lazy = new Redis(server.url, { lazyConnect: true });
    const locks = lockService(redisStore({ connection: lazy }));
    expect(lazy.status).toBe('wait');
    await locks.withLock('account:1', () => undefined);
    await locks.close();
    expect(lazy.status).toBe('ready');
    lazy.disconnect();
  });
});
