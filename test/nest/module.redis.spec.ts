import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { Redis } from 'ioredis';
import {
  LockService,
  LockUnavailableError,
  RedisLockModule,
  type RedisLockModuleOptions,
  WithLock,
} from 'nest-redis-lock';
import { turn, until } from '../support/deferred.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';

const ignore = () => undefined;

@Injectable()
class Accounts {
  constructor(readonly locks: LockService) {}

  @WithLock('account:<id>', { wait: 0 })
  async withdraw(id: string) {
    return [id, this.locks.current()!.token];
  }
}

let server: RedisServer;
let redis: Redis;
const open: TestingModule[] = [];

beforeAll(async () => {
  server = await startRedis();
});

beforeEach(() => {
  redis = new Redis(server.url);
});

afterEach(async () => {
  for (const module of open.splice(0)) await module.close();
  redis.disconnect();
});

afterAll(() => server.stop());

async function start(
  options: RedisLockModuleOptions = {},
  warn: (line: string) => void = ignore,
): Promise<TestingModule> {
  const imports = [RedisLockModule.forRoot({ connection: server.url, commandTimeout: '500ms', ...options })];
  const module = await Test.createTestingModule({ imports, providers: [Accounts] })
    .setLogger({ log: ignore, error: ignore, warn })
    .compile();
  open.push(module);
  return module.init();
}

const ourConnections = async () =>
  ((await redis.client('LIST')) as string).split('\n').filter((line) => line.includes('name=nest-redis-lock'));

describe('on a real Redis', () => {
  it('the keyPrefix is "lock:" when it is left out', async () => {
    const module = await start({});
    await using lock = await module.get(LockService).lock('account:42');
    expect(await redis.get('lock:account:42')).toBe(lock.token);
  });

  it.each([
    ['lock:', 'lock:account:42'],
    ['{bank}:', '{bank}:account:42'],
    ['', 'account:42'],
  ])(
    'with keyPrefix %p the key is a plain string with the token, exactly where other tools look for it',
    async (keyPrefix, name) => {
      const module = await start({ keyPrefix });
      await using lock = await module.get(LockService).lock('account:42', { lease: '20s' });

      expect(await redis.get(name)).toBe(lock.token);
      expect(await redis.pttl(name)).toBeGreaterThan(10_000);
      expect(await redis.set(name, 'another tool', 'PX', 1000, 'NX')).toBeNull();
    },
  );

  it('a key that another tool holds counts as held', async () => {
    const accounts = (await start()).get(Accounts);
    await redis.set('lock:account:42', 'another tool', 'PX', 60_000, 'NX');

    await expect(accounts.withdraw('42')).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', holder: undefined });
    expect(await redis.getdel('lock:account:42')).toBe('another tool');
    expect(await accounts.withdraw('42')).toEqual(['42', expect.any(String)]);
    expect(await redis.exists('lock:account:42')).toBe(0);
  });

  it('an app that closes right after its start does not warn of Redis', async () => {
    const lines: string[] = [];
    for (let steps = 0; steps < 16; steps++) {
      const module = await start({}, (line) => void lines.push(line));
      for (let step = 0; step < steps; step++) await turn();
      await module.close();
    }
    // What a connection that is gone would still say.
    await sleep(50);
    expect(lines).toEqual([]);
  });

  it('a URL can say how long a connection may take', async () => {
    const module = await start({ connection: `${server.url}?connectTimeout=5000&noDelay=true` });
    await expect(module.get(Accounts).withdraw('42')).resolves.toEqual(['42', expect.any(String)]);
  });

  it('two apps exclude each other', async () => {
    const [one, two] = [await start(), await start()];
    await using held = await one.get(LockService).lock('account:42');
    await expect(two.get(Accounts).withdraw('42')).rejects.toMatchObject({
      code: 'LOCK_TIMEOUT',
      holder: expect.stringMatching(/:\d+$/),
    });
    held.assertHeld();
  });
});

describe('on shutdown', () => {
  it("a shutdown closes the module's own connection", async () => {
    const module = await start();
    await module.get(Accounts).withdraw('42');
    expect(await ourConnections()).toHaveLength(2);

    await module.close();
    await until(async () => (await ourConnections()).length === 0);
  });

  it("a shutdown leaves the app's own client open and as it was", async () => {
    const client = new Redis(server.url);
    await client.ping();
    const state = () => ({
      events: client.eventNames().map((name) => [name, client.listenerCount(name)]),
      options: { ...client.options },
    });
    const before = state();

    const module = await start({ connection: client });
    await module.get(Accounts).withdraw('42');
    await module.close();

    expect(state()).toEqual(before);
    expect(await client.ping()).toBe('PONG');
    client.disconnect();
  });

  it('a shutdown grants no new lock, and waits for those that are held', async () => {
    const module = await start();
    const locks = module.get(LockService);
    await using held = await locks.lock('account:42');
    const closing = module.close();
    const refusal = () => locks.withLock('account:43', () => undefined).catch((error: unknown) => error);
    await until(async () => (await refusal()) instanceof LockUnavailableError);

    held.assertHeld();
    await held.unlock();
    await closing;
    expect(await redis.exists('lock:account:42')).toBe(0);
  });
});

describe('an outage', () => {
  afterEach(() => server.restart());

  it('an outage at boot is over when Redis is back: the app needs no restart', async () => {
    redis.disconnect();
    await server.kill();
    const accounts = (await start()).get(Accounts);
    await expect(accounts.withdraw('42')).rejects.toBeInstanceOf(LockUnavailableError);

    await server.restart();
    await until(() =>
      accounts.withdraw('42').then(
        () => true,
        () => false,
      ),
    );
  });

  it('an outage at boot is in the log, with what to do', async () => {
    redis.disconnect();
    await server.kill();
    const warnings: string[] = [];
    await start({}, (line) => warnings.push(line));

    await until(() => warnings.length > 0);
    expect(warnings).toEqual([
      expect.stringMatching(
        /^Redis at \S+ can't be reached: connect ECONNREFUSED \S+\. Check that it runs .* Calls that need a lock fail until it is back\.$/,
      ),
    ]);
  });

  it('an outage leaves no timer behind that keeps the process alive when the app closes', async () => {
    redis.disconnect();
    await server.kill();
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const module = await start();
    await expect(module.get(Accounts).withdraw('42')).rejects.toBeInstanceOf(LockUnavailableError);

    await module.close();
    const closedAt = performance.now();
    await until(() => timers() <= before);
    expect(performance.now() - closedAt).toBeLessThan(1000);
  });
});
