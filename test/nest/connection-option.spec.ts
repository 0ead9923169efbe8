import { describe, expect, it } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { LockOptionsError, RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { besides, subscriberOf } from '../../lib/redis/connection/further-client.js';
import { redisClient } from '../../lib/redis/connection/redis-client.js';
import { MemoryLockStore } from 'nest-redis-lock/testing';

async function boot(options: unknown): Promise<void> {
  const module = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot(options as RedisLockModuleOptions)],
  }).compile();
  await module.close();
}

async function refusal(connection: unknown): Promise<string> {
  const error = await boot({ connection }).catch((error: unknown) => error);
  expect(error).toBeInstanceOf(LockOptionsError);
  return (error as LockOptionsError).message;
}

/** What tells a client of ioredis 4 from one of 5: this one has no `mode`. */
const ioredis4Client = {
  status: 'ready',
  options: { password: 'hunter2' },
  evalsha: () => undefined,
  sendCommand: () => undefined,
};

/** What the `createClient()` of node-redis returns, as far as it can be told from outside. */
const nodeRedisClient = {
  evalSha: () => undefined,
  sendCommand: () => undefined,
  isOpen: false,
  options: { url: 'redis://app:hunter2@10.0.0.1' },
};

describe('nobody locks on the server of this machine by accident', () => {
  it.each<[string, unknown, RegExp]>([
    ['a client of node-redis', nodeRedisClient, /node-redis.*URL that createClient\(\) got/],
    ['a promise of a client', Promise.resolve({}), /Promise.*Await it/],
    ['a client of another kind', { evalsha: () => undefined, sendCommand: () => undefined }, /not one of ioredis/],
    ['a client of ioredis 4', ioredis4Client, /ioredis 4: give one of ioredis 5\.11 or later/],
    [
      'a Cluster client of ioredis 4',
      { ...ioredis4Client, isCluster: true, nodes: () => [], clearAddedScriptHashesCleanInterval: () => undefined },
      /ioredis 4: give one of ioredis 5\.11/,
    ],
    [
      'a client with get() and close(), such as that of Bun',
      { get: () => undefined, send: () => undefined, close: () => undefined, connected: false },
      /not one of ioredis 5 or 6: give the URL/,
    ],
    [
      'a client of Valkey GLIDE',
      { get: () => undefined, customCommand: () => undefined, close: () => undefined, socket: {} },
      /not one of ioredis 5 or 6: give the URL/,
    ],
    ['{ url }', { url: 'redis://10.0.0.1' }, /"connection\.url".*URL itself/],
    ['{ socket }', { socket: { host: '10.0.0.1' } }, /"connection\.socket".*node-redis.*"host"/],
    ['{ prot }', { prot: 6390 }, /"connection\.prot".*Did you mean "port"/],
    ['{ Host }', { Host: '10.0.0.1' }, /"connection\.Host".*Did you mean "host"/],
    ['{ nodes }', { nodes: [] }, /"connection\.nodes".*Cluster client/],
    ['a URL as the host', { host: 'redis://bob:hunter2@10.0.0.1' }, /"connection\.host" is a URL/],
    ['a part of a URL as the host', { host: 'bob:hunter2@10.0.0.1' }, /"connection\.host" is a URL, or a part of one/],
    ['a URL as the port', { host: '10.0.0.1', port: 'redis://bob:hunter2@10.0.0.1' }, /"redis:\/\/…@10\.0\.0\.1"/],
    ['a part of a URL as the port', { host: '10.0.0.1', port: 'bob:hunter2@10.0.0.1:1' }, /"…@10\.0\.0\.1:1"/],
    ['a part of a URL as the database', { host: '10.0.0.1', db: 'bob:hunter2@10.0.0.1' }, /"…@10\.0\.0\.1"/],
    ['a URL as the path', { path: 'redis://bob:hunter2@10.0.0.1' }, /"connection\.path" is a URL/],
    [
      'a URL as the host of a Sentinel',
      { sentinels: [{ host: 'redis://bob:hunter2@10.0.0.1' }], name: 'mymaster' },
      /"connection\.sentinels\[0\]\.host" is a URL/,
    ],
    ['a URL with a raw "?" in its password', 'redis://bob:12?hunter2@10.0.0.1', /has an option that is no word.*%3F/],
    ['an option that resembles none', { host: '10.0.0.1', quux: true }, /"connection\.quux" is no option of ioredis/],
    ['an empty object', {}, /names no server/],
    ['options that name no server', { db: 2, password: 'hunter2' }, /names no server/],
    [
      'a host that is undefined',
      { host: undefined, port: 6379 },
      /"connection\.host" is undefined: a setting is missing/,
    ],
    ['a port that is undefined', { host: '10.0.0.1', port: undefined }, /"connection\.port" is undefined/],
    ['an empty host', { host: '' }, /"connection\.host" is ""/],
    ['a host that is a number', { host: 5 }, /"connection\.host" is 5/],
    ['a port that is NaN', { port: NaN }, /"connection\.port" is NaN/],
    ['a port that is text', { port: 'six' }, /"connection\.port" is "six"/],
    ['a port that is too large', { port: 65_536 }, /"connection\.port" is 65536/],
    [
      'a class instance',
      new (class RedisConfig {
        readonly url = 'redis://10.0.0.1';
      })(),
      /"connection\.url"/,
    ],
    ['a Map', new Map([['host', '10.0.0.1']]), /"connection\.size"/],
    ['a database that is NaN', { host: '10.0.0.1', db: NaN }, /"connection\.db" is NaN/],
    [
      'a Sentinel without a host',
      { sentinels: [{ host: undefined, port: 1 }], name: 'main' },
      /"connection\.sentinels\[0\]\.host"/,
    ],
    [
      'a Sentinel that is null',
      { sentinels: [{ host: 'a', port: 1 }, null], name: 'main' },
      /"connection\.sentinels\[1\]" is null, but must be \{ host, port \}/,
    ],
    [
      'a Sentinel that is a URL',
      { sentinels: ['redis://bob:hunter2@10.0.0.1'], name: 'main' },
      /"connection\.sentinels\[0\]" is "redis:\/\/…@10\.0\.0\.1", but must be/,
    ],
    [
      'a Sentinel with a port that is text',
      { sentinels: [{ host: 'a', port: 'x' }], name: 'main' },
      /"connection\.sentinels\[0\]\.port" is "x", but must be a number from 1 to 65535/,
    ],
    ['options that monitor', { host: '10.0.0.1', monitor: true }, /"connection\.monitor" is true/],
    ['a URL that monitors', 'redis://10.0.0.1?monitor=true', /"connection\.monitor" is true/],
    ['a client that monitors', new Redis({ monitor: true, lazyConnect: true }), /"connection\.monitor" is true/],
    ['no Sentinels', { sentinels: [], name: 'main' }, /"connection\.sentinels" names none, but must be an array/],
    [
      'Sentinels without a name',
      { sentinels: [{ host: 'a', port: 1 }] },
      /"connection\.name" is undefined.*"mymaster"/,
    ],
    ['an undefined path', { path: undefined }, /"connection\.path" is undefined/],
    ['a function', () => ({ host: '10.0.0.1' }), /a function/],
    ['a URL of another protocol', new URL('http://10.0.0.1'), /redis:\/\/ or rediss:\/\//],
    ['a URL without a host', 'redis:///2', /without a host/],
    ['a URL whose path is no database', 'redis://10.0.0.1/abc', /number of a database/],
    ['a URL with a # in its password', 'redis://:hunter#2@10.0.0.1', /can't be read.*write %23 for #/],
    ['a URL with a / in its password', 'redis://:hunter/2@10.0.0.1', /can't be read.*%2F for \//],
    ['a URL with a lone %', 'redis://user:hunter2%@10.0.0.1', /write %25 for it/],
    ['a URL with an unknown option', 'redis://10.0.0.1?sslmode=require', /"connection\.sslmode"/],
    [
      'a URL with a time that is no number',
      'redis://10.0.0.1?connectTimeout=1s',
      /"connection\.connectTimeout" is "1s"/,
    ],
    ['a URL with a switch that is not on or off', 'redis://10.0.0.1?noDelay=', /"connection\.noDelay".*true or false/],
    ['a URL with a function', 'redis://10.0.0.1?retryStrategy=x', /"connection\.retryStrategy" can't stand in a URL/],
    ['a time that is NaN', { host: '10.0.0.1', connectTimeout: NaN }, /"connection\.connectTimeout" is NaN/],
    ['a switch that is a number', { host: '10.0.0.1', noDelay: 1 }, /"connection\.noDelay" is 1, but must be true or/],
  ])('%s is refused at boot', async (_what, connection, message) => {
    const text = await refusal(connection);
    expect(text).toMatch(message);
    expect(text).not.toContain('hunter2');
  });

  it('a connection that is explicitly undefined is refused, whatever else is given', async () => {
    await expect(boot({ connection: undefined })).rejects.toThrow(/"connection" is undefined: a setting is missing/);
    await expect(boot({ connection: undefined, wait: '1s' })).rejects.toBeInstanceOf(LockOptionsError);
    await expect(boot({ store: undefined })).rejects.toThrow(/"store" is undefined/);
  });

  it('a factory that returns an undefined connection is refused', async () => {
    const imports = [RedisLockModule.forRootAsync({ useFactory: () => ({ connection: undefined }) })];
    await expect(Test.createTestingModule({ imports }).compile()).rejects.toThrow(/"connection" is undefined/);
  });

  it('one of several connections is named by its place', async () => {
    expect(await refusal(['redis://a', 'redis://b', { prot: 1 }])).toMatch(/"connection\[2\]\.prot".*"port"/);
    expect(await refusal(['redis://a', undefined, 'redis://c'])).toMatch(/"connection\[1\]".*not undefined/);
  });
});

it.each<[string, RedisLockModuleOptions]>([
  ['a URL object', { connection: new URL('rediss://user:password@127.0.0.1:1/2') }],
  ['a URL with an option of ioredis', { connection: 'redis://127.0.0.1:1/0?family=4' }],
  ['a port that came as text', { connection: { port: '1' as unknown as number } }],
  [
    'options of ioredis itself',
    { connection: { host: '127.0.0.1', port: 1, sentinels: null as never, path: undefined } },
  ],
  ['a path', { connection: { path: '/run/no-such.sock' } }],
  [
    'Sentinels with a port that came as text, and without one',
    {
      connection: {
        sentinels: [{ host: '127.0.0.1', port: '1' as unknown as number }, { host: '127.0.0.1' }],
        name: 'a',
      },
    },
  ],
  ['options that say that they do not monitor', { connection: { port: 1, monitor: false } }],
  ['a store, and a connection that is undefined', { connection: undefined, store: new MemoryLockStore() }],
])('a module boots with %s', async (_what, options) => {
  await expect(boot(options)).resolves.toBeUndefined();
});

it('a client gets the options of a class or a prototype', () => {
  class RedisConfig {
    get host() {
      return '10.0.0.1';
    }
    get port() {
      return 6390;
    }
  }
  for (const connection of [new RedisConfig(), Object.create({ host: '10.0.0.1', port: 6390 })]) {
    expect(redisClient(connection, 1000).redis.options).toMatchObject({ host: '10.0.0.1', port: 6390 });
  }
});

it('a client gets numbers and switches that are texts, as settings and URLs have them', () => {
  const { options } = redisClient('redis://10.0.0.1/?connectTimeout=700&noDelay=false&connectionName=7', 1000).redis;
  expect(options).toMatchObject({ host: '10.0.0.1', connectTimeout: 700, noDelay: false, connectionName: '7' });
  const settings = { host: '10.0.0.1', port: '6390', connectTimeout: '700', noDelay: 'false' };
  expect(redisClient(settings, 1000).redis.options).toMatchObject({ port: 6390, connectTimeout: 700, noDelay: false });
});

describe('the time to connect', () => {
  const attemptsOf = (redis: Redis): number[] => {
    const { options } = redis;
    const first = options.connectTimeout!;
    return [first, ...[1, 2, 3, 4, 5].map((attempt) => (options.retryStrategy!(attempt), options.connectTimeout!))];
  };
  const always = (ms: number): number[] => [ms, ms, ms, ms, ms, ms];
  const growing = [1500, 1500, 3000, 6000, 10_000, 10_000];

  it.each<[string, unknown, number[], number[]]>([
    ['is short at first where the app sets none', 'redis://10.0.0.1', growing, growing],
    ['is what the app sets', 'redis://10.0.0.1?connectTimeout=7000', always(7000), always(7000)],
    [
      'is unlimited where the app sets 0, for its own connection',
      'redis://10.0.0.1?connectTimeout=0',
      always(0),
      growing,
    ],
    ['is short at first beside a client that the app lends', new Redis({ lazyConnect: true }), always(10_000), growing],
    [
      'is never longer than that of a client that the app lends',
      new Redis({ lazyConnect: true, connectTimeout: 2000 }),
      always(2000),
      [1500, 1500, 2000, 2000, 2000, 2000],
    ],
  ])('%s', (_what, connection, own, further) => {
    const client = redisClient(connection, 1500);
    for (const redis of [subscriberOf(client, 1500), besides(client, 1500).redis])
      expect(attemptsOf(redis)).toEqual(further);
    expect(attemptsOf(client.redis)).toEqual(own);
  });
});

it('an unknown option of the module names the one that was probably meant', async () => {
  await expect(boot({ conection: 'redis://127.0.0.1' })).rejects.toThrow(
    /no option "conection"\. Did you mean "connection"\?/,
  );
});
