import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Cluster, Redis, type ClusterOptions } from 'ioredis';
import { LockOptionsError, LockService, RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';

const URL = 'redis://127.0.0.1:1';
const clients: (Redis | Cluster)[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

/** A client that never connects. */
const redis = (password?: string) => {
  const client = new Redis({ port: 1, password, lazyConnect: true });
  clients.push(client);
  return client;
};

const cluster = (options: ClusterOptions = {}) => {
  const client = new Cluster([{ host: '127.0.0.1', port: 1 }], { ...options, lazyConnect: true });
  clients.push(client);
  return client;
};

async function boot(options: unknown): Promise<void> {
  const module = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot(options as RedisLockModuleOptions)],
  }).compile();
  await module.close();
}

describe('options of a module', () => {
  it.each<[string, unknown]>([
    ['keyPrefix', 5],
    ['keyPrefix', null],
    ['wait', 'soon'],
    ['wait', ''],
    ['wait', -1],
    ['wait', NaN],
    ['wait', 10n],
    ['lease', '99ms'],
    ['lease', 0],
    ['lease', Infinity],
    ['watchdog', 'no'],
    ['watchdog', null],
    ['maxHold', 0],
    ['maxHold', 'long'],
    ['warnAfter', 0],
    ['warnAfter', 'late'],
    ['maxWaiters', -1],
    ['maxWaiters', 2.5],
    ['maxWaiters', 3n],
    ['reentrant', 'no'],
    ['commandTimeout', 0],
    ['commandTimeout', '5ms'],
    ['commandTimeout', Infinity],
    ['commandTimeout', '25d'],
    ['commandTimeout', 2 ** 31],
    ['shutdownGrace', -1],
    ['shutdownGrace', Infinity],
    ['shutdownGrace', ''],
    ['http', 'yes'],
    ['http', null],
    ['exceptionFactory', {}],
    ['exceptionFactory', null],
    ['exceptionFactory', 423],
    ['name', ''],
    ['name', 5],
    ['name', null],
    ['isGlobal', 'yes'],
    ['isGlobal', null],
    ['store', {}],
    ['store', null],
    ['store', 'memory'],
  ])('a module with %s: %p is refused: the error names the option and what is allowed', async (option, value) => {
    await expect(boot({ [option]: value })).rejects.toBeInstanceOf(LockOptionsError);
    await expect(boot({ [option]: value })).rejects.toThrow(new RegExp(`"${option}" is .*must be `));
  });

  it('the refusal of a commandTimeout that is longer than a timer says how long it may be', async () => {
    await expect(boot({ commandTimeout: '25d' })).rejects.toThrow(
      /^"commandTimeout" is "25d", but must be a duration of at least 10 ms and at most 24 days: /,
    );
    await expect(boot({ lease: '32y' })).rejects.toThrow(/at least 100 ms and at most 30 years: /);
  });

  it('a duration that is longer than a timer starts no timer that would end at once', async () => {
    const timers = jest.spyOn(globalThis, 'setTimeout');
    const long = '30d';
    const module = await Test.createTestingModule({
      imports: [
        LockTestingModule.forRoot({ wait: long, lease: long, maxHold: long, warnAfter: long, shutdownGrace: long }),
      ],
    }).compile();
    try {
      const locks = module.get(LockService);
      const aborts = new AbortController();
      const held = await locks.lock('room', { atLeast: long });
      const waiting = locks.lock('room', { signal: aborts.signal });
      locks.onModuleDestroy();
      aborts.abort(new Error('gone'));
      await expect(waiting).rejects.toThrow('gone');
      await held.unlock();
      expect(timers.mock.calls.map(([, delay]) => delay ?? 0).filter((delay) => delay > 2 ** 31 - 1)).toEqual([]);
    } finally {
      timers.mockRestore();
      await module.close();
    }
  });

  it.each<[string, () => unknown, RegExp]>([
    ['an address without redis://', () => '127.0.0.1:6379', /redis:\/\//],
    ['an empty string', () => '', /redis:\/\//],
    ['a number', () => 6379, /not \d+/],
    ['null', () => null, /null/],
    ['true', () => true, /not true/],
    ['an array of none', () => [], /an array of 0.*at least three/],
    ['an array of two', () => [URL, 'redis://127.0.0.1:2'], /an array of 2.*at least three/],
    [
      'an array of an even number',
      () => [1, 2, 3, 4].map((port) => ({ port })),
      /an array of 4.*even number tolerates no more failures than 3/,
    ],
    [
      'an array that names a URL twice',
      () => ['redis://a', 'redis://b', 'redis://user:password@a:6379/2'],
      /"connection\[0\]" and "connection\[2\]" are the same Redis/,
    ],
    [
      'an array that has a client twice',
      () => ['redis://a', ...Array<Redis>(2).fill(redis())],
      /"connection\[1\]" and "connection\[2\]" are the same Redis/,
    ],
    [
      'an array that names an address in two ways',
      () => [{ port: 1 }, 'redis://localhost:1', 'redis://c'],
      /"connection\[0\]" and "connection\[1\]" are the same Redis/,
    ],
    [
      'an array with something else in it',
      () => [URL, 'redis://b', 6379],
      /"connection\[2\]" must be a redis:\/\/.*not 6379/,
    ],
    ['an array with an array in it', () => [URL, [URL], 'redis://c'], /"connection\[1\]" is an array/],
    [
      'an array with a Cluster client in it',
      () => [URL, cluster(), 'redis://c'],
      /"connection\[1\]" is a Redis Cluster client/,
    ],
    [
      'an array with a keyPrefix in it',
      () => [{ port: 2 }, { port: 3 }, { port: 4, keyPrefix: 'app:' }],
      /"connection\[2\]\.keyPrefix" is "app:"/,
    ],
    ['options with a keyPrefix of their own', () => ({ port: 1, keyPrefix: 'app:' }), /keyPrefix.*"app:"/],
  ])('a module is refused when its connection is %s', async (_what, connection, message) => {
    const booting = boot({ connection: connection() });
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toThrow(message);
    await expect(booting).rejects.toThrow(/"connection/);
  });

  it('a module is refused when the client of the app adds a keyPrefix', async () => {
    const client = new Redis({ port: 1, keyPrefix: 'app:', lazyConnect: true });
    clients.push(client);
    await expect(boot({ connection: client })).rejects.toThrow(/"connection.*keyPrefix.*"app:"/);
  });

  it.each([{ keyPrefix: 'app:' }, { redisOptions: { keyPrefix: 'app:' } }])(
    'a module is refused when the Cluster client of the app adds a keyPrefix: %j',
    async (options) => {
      await expect(boot({ connection: cluster(options) })).rejects.toThrow(/"connection.*keyPrefix.*"app:"/);
    },
  );

  it('a module is refused with "durability" on a Cluster', async () => {
    await expect(boot({ connection: cluster(), durability: { replicas: 1 } })).rejects.toThrow(
      /"durability".*Redis Cluster/,
    );
  });

  it('a module is refused with both a store and a connection', async () => {
    await expect(boot({ store: new MemoryLockStore(), connection: URL })).rejects.toThrow(
      /either "connection" or "store"/,
    );
  });

  it.each(['fair', 'mode', 'permits', 'atLeast', 'scope', 'retries'])(
    'a module is refused with the unknown option "%s"',
    async (option) => {
      const booting = boot({ [option]: 1 });
      await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
      await expect(booting).rejects.toThrow(new RegExp(`no option "${option}".*connection.*lease`));
    },
  );

  it.each([null, 5, 'redis://127.0.0.1'])(
    'a module is refused with %p in the place of its options',
    async (options) => {
      await expect(boot(options)).rejects.toBeInstanceOf(LockOptionsError);
    },
  );
});

describe('the refusal does not show a password', () => {
  it('the refusal of a URL that is not one of Redis does not show its password', async () => {
    await expect(boot({ connection: 'http://user:hunter2@127.0.0.1' })).rejects.toThrow(/^((?!hunter2).)*$/s);
  });

  it('the refusal of a Redis client that was given as the store does not show its password', async () => {
    const booting = boot({ store: redis('hunter2') });
    await expect(booting).rejects.toBeInstanceOf(LockOptionsError);
    await expect(booting).rejects.toThrow(/^((?!hunter2).)*$/s);
  });
});

it.each<[string, () => RedisLockModuleOptions]>([
  ['no options', () => ({})],
  [
    'options that are undefined, but for those that say where locks live',
    () => ({ connection: URL, store: undefined, wait: undefined, durability: undefined, isGlobal: undefined }),
  ],
  ['a URL', () => ({ connection: 'rediss://user:password@127.0.0.1:1/2' })],
  ['ioredis options', () => ({ connection: { host: '127.0.0.1', port: 1 } })],
  ['Sentinel options', () => ({ connection: { sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'main' } })],
  ["the app's own client", () => ({ connection: redis() })],
  [
    'three independent masters',
    () => ({ connection: [redis(), { host: '127.0.0.1', port: 2 }, 'redis://127.0.0.1:3'] }),
  ],
  [
    'three masters of one name, each behind Sentinels of its own',
    () => ({ connection: [1, 2, 3].map((port) => ({ sentinels: [{ host: '127.0.0.1', port }], name: 'main' })) }),
  ],
  ['an empty keyPrefix', () => ({ keyPrefix: '' })],
  ['the longest commandTimeout', () => ({ commandTimeout: 2 ** 31 - 1, durability: { replicas: 1 } })],
  [
    'limits',
    () => ({
      wait: Infinity,
      lease: '100ms',
      maxHold: 1,
      warnAfter: Infinity,
      maxWaiters: 0,
      shutdownGrace: 0,
      commandTimeout: 10,
    }),
  ],
])('a module boots with %s', async (_what, options) => {
  await expect(boot(options())).resolves.toBeUndefined();
});
