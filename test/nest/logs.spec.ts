import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Controller, Get, type INestApplication, Logger, Param, Post } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, LockUnavailableError, RedisLockModule, WithLock } from 'nest-redis-lock';
import { LockTestingModule, MemoryLockStore } from 'nest-redis-lock/testing';
import { Redis } from 'ioredis';
import request from 'supertest';
import { until } from '../support/deferred.js';
import { type RedisServer, startRedis } from '../support/redis/redis-server.js';
import { storeOutage } from '../../lib/errors/store-outage.js';
import { OutageReporter } from '../../lib/service/outage-reporter.js';
import { SubscriptionReporter } from '../../lib/service/subscription-reporter.js';
import { PLATFORMS, startApp } from './http-app.js';

@Controller('accounts')
class Accounts {
  constructor(private readonly locks: LockService) {}

  @Get(':id/locked')
  isLocked(@Param('id') id: string) {
    return this.locks.isLocked(`account:${id}`);
  }

  @Post(':id/withdraw')
  @WithLock('account:<id>')
  async withdraw(@Param('id') id: string) {
    return { id };
  }

  @Post('orders')
  @WithLock('order:<body.order.id>', { scope: 'request' })
  async order() {
    return 'ordered';
  }
}

let app: INestApplication | undefined;

afterEach(async () => {
  Logger.overrideLogger(false);
  await app?.close();
  app = undefined;
});

/** Hears what the library logs, level first. */
function hear(): string[] {
  const lines: string[] = [];
  const level =
    (name: string) =>
    (line: string, ...more: unknown[]) =>
      lines.push([name, line, ...more.slice(0, -1)].join(' '));
  Logger.overrideLogger({ log: level('log'), warn: level('warn'), error: level('error') });
  return lines;
}

describe.each(PLATFORMS)('The log, on %s,', (_platform, adapter) => {
  const post = (path: string, body = {}) => request(app!.getHttpServer()).post(`/accounts/${path}`).send(body);

  it('the log names the method and the route of a request that found its lock held', async () => {
    app = await startApp(adapter, {
      imports: [LockTestingModule.forRoot({ wait: 0, shutdownGrace: 0 })],
      controllers: [Accounts],
    });
    await app.get(LockService).lock('account:42');
    const lines = hear();
    await post('42/withdraw?token=secret').expect(409);
    expect(lines).toEqual([
      expect.stringMatching(
        /^warn POST \/accounts\/:id\/withdraw \(Accounts\.withdraw\): Could not take lock "account:42" for "Accounts\.withdraw"/,
      ),
    ]);
  });

  it('the log has a bad request as a warning without a stack, and the response names the field', async () => {
    app = await startApp(adapter, { imports: [LockTestingModule.forRoot()], controllers: [Accounts] });
    const lines = hear();
    const { body } = await post('orders', { order: {} }).expect(400);
    expect(body).toMatchObject({
      code: 'LOCK_KEY_INVALID',
      message:
        'The request does not say clearly enough what to work on: body.order.id is missing, ' +
        'empty or of the wrong kind.',
    });
    expect(lines).toEqual([
      expect.stringMatching(
        /^warn POST \/accounts\/orders \(Accounts\.order\): <body\.order\.id> in the lock key .* is undefined[^\n]*$/,
      ),
    ]);
  });

  it('the log has two lines of an outage, however many requests it fails', async () => {
    const server = await startRedis();
    app = await startApp(adapter, {
      imports: [RedisLockModule.forRoot({ connection: server.url, commandTimeout: '800ms' })],
      controllers: [Accounts],
    });
    await post('42/withdraw').expect(201);
    const lines = hear();
    await server.kill();
    for (let i = 0; i < 5; i++) await Promise.all([1, 2, 3].map((id) => post(`${id}/withdraw`).expect(503)));
    await server.restart();
    await until(async () => (await post('42/withdraw')).status === 201);
    await until(() => isHeard(server));
    expect(lines).toEqual([
      expect.stringMatching(
        /^warn Redis at 127\.0\.0\.1:\d+ can't be reached: .* Calls that need a lock fail until it is back\./,
      ),
      expect.stringMatching(
        /^log Redis at 127\.0\.0\.1:\d+ can be reached again, after [\d.]+ s; (1[5-9]|[2-9]\d) calls failed\.$/,
      ),
    ]);
    await app.close();
    app = undefined;
    await server.stop();
  });
});

/** Whether the subscription of the app is there. */
async function isHeard(server: RedisServer): Promise<boolean> {
  const redis = new Redis(server.url);
  const channels = (await redis.pubsub('CHANNELS')) as string[];
  redis.disconnect();
  return channels.length > 0;
}

it('the log has two lines of an outage of one of several masters, too', async () => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  app = await startApp(PLATFORMS[0]![1], {
    imports: [
      RedisLockModule.forRoot({ connection: servers.map(({ url }) => url), commandTimeout: '300ms', lease: '100ms' }),
    ],
    controllers: [Accounts],
  });
  await until(async () => (await Promise.all(servers.map(isHeard))).every(Boolean));
  const lines = hear();
  await servers[0].kill();
  await until(() => lines.length > 0);
  await servers[0].restart();
  await until(() => isHeard(servers[0]));
  await until(() => lines.length > 1);
  expect(lines).toEqual([
    expect.stringMatching(
      /^warn Redis at 127\.0\.0\.1:\d+ can't be reached: .* Locks go on while 2 of the 3 nodes work\.$/,
    ),
    expect.stringMatching(/^log Redis at 127\.0\.0\.1:\d+ can be reached again, after [\d.]+ s\.$/),
  ]);
  await app.close();
  app = undefined;
  await Promise.all(servers.map((server) => server.stop()));
});

it.each([
  ['counts a question that shows it', storeOutage, [], 5],
  [
    'has a line for a question that may fail for its own key',
    (error: LockUnavailableError) => error,
    ['warn GET /accounts/:id/locked (Accounts.isLocked): The key is no lock.'],
    4,
  ],
])('the log has two lines of an outage of a store of the app, too, and %s', async (_what, ofQuestion, own, calls) => {
  const store = new MemoryLockStore();
  const acquire = store.acquire.bind(store);
  app = await startApp(PLATFORMS[0]![1], { imports: [RedisLockModule.forRoot({ store })], controllers: [Accounts] });
  const locks = app.get(LockService);
  const lines = hear();
  store.acquire = () => Promise.reject(new LockUnavailableError('The disk is full.'));
  for (let i = 0; i < 3; i++) await expect(locks.lock('a')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
  await request(app.getHttpServer()).post('/accounts/1/withdraw').expect(503);
  store.isLocked = () => Promise.reject(ofQuestion(new LockUnavailableError('The key is no lock.')));
  await request(app.getHttpServer()).get('/accounts/1/locked').expect(503);
  store.acquire = acquire;
  await until(async () => (await locks.withLock('a', () => lines.length)) === 2 + own.length);
  expect(lines).toEqual([
    "warn A lock can't be acquired: The disk is full.",
    ...own,
    expect.stringMatching(new RegExp(`^log Locks can be acquired again, after \\d\\.\\d s; ${calls} calls failed\\.$`)),
  ]);
});

it('the log does not say that an outage is over for a lock that the store was not asked for', async () => {
  const store = new MemoryLockStore();
  app = await startApp(PLATFORMS[0]![1], { imports: [RedisLockModule.forRoot({ store })], controllers: [Accounts] });
  const locks = app.get(LockService);
  const lines = hear();
  await locks.withLock('held', async () => {
    store.acquire = () => Promise.reject(new LockUnavailableError('The disk is full.'));
    await expect(locks.lock('a')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE' });
    const failedAt = performance.now();
    await until(() => performance.now() > failedAt + 1100);
    await locks.withLock('held', () => undefined);
  });
  expect(lines).toEqual(["warn A lock can't be acquired: The disk is full."]);
});

it('the log reports no outage when a caller ends its own wait or names too short a lease', async () => {
  const store = new MemoryLockStore();
  app = await startApp(PLATFORMS[0]![1], {
    imports: [RedisLockModule.forRoot({ store, exceptionFactory: () => undefined })],
    controllers: [Accounts],
  });
  const locks = app.get(LockService);
  const lines = hear();
  const held = await locks.lock('a');
  const reason = new LockUnavailableError('Another call failed.');
  const aborts = new AbortController();
  const waiting = locks.lock('a', { signal: aborts.signal }).catch((error: unknown) => error);
  aborts.abort(reason);
  expect(await waiting).toBe(reason);
  await held.unlock();
  const acquire = store.acquire.bind(store);
  store.acquire = async (command) => {
    const reply = await acquire(command);
    const repliedAt = performance.now();
    await until(() => performance.now() > repliedAt + 150);
    return reply;
  };
  await expect(locks.lock('b', { lease: 100, wait: 50 })).rejects.toMatchObject({
    code: 'LOCK_UNAVAILABLE',
    detail: expect.stringContaining('Raise "lease"'),
  });
  expect(lines).toEqual([]);
});

describe('A logger that throws', () => {
  let redis: RedisServer;
  let stderr: jest.SpiedFunction<typeof process.stderr.write>;

  beforeEach(async () => {
    redis = await startRedis();
    stderr = jest.spyOn(process.stderr, 'write').mockReturnValue(true);
  });

  afterEach(async () => {
    stderr.mockRestore();
    await redis.stop();
  });

  it('a logger that throws keeps no call from its end in an outage; its lines go to stderr', async () => {
    const broken = (): never => {
      throw new Error('The disk is full.');
    };
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ connection: redis.url, commandTimeout: '300ms', shutdownGrace: 0 })],
    }).compile();
    try {
      await module.init();
      Logger.overrideLogger({ log: broken, warn: broken, error: broken });
      const locks = module.get(LockService);
      expect(await locks.withLock('account:42', async () => 'inside')).toBe('inside');
      await redis.kill();
      const calls = ['a', 'b'].map((key) => locks.withLock(key, async () => 'inside', { wait: '200ms' }));
      const reasons = (await Promise.allSettled(calls)).map(
        (call) => call.status === 'rejected' && (call.reason as unknown),
      );
      expect(reasons).toEqual([expect.any(LockUnavailableError), expect.any(LockUnavailableError)]);
      expect(stderr.mock.calls.join('')).toMatch(/\[RedisLock\] Redis at 127\.0\.0\.1:\d+ can't be reached/);
      await redis.restart();
      await until(async () => (await locks.tryLock('account:42').catch(() => null)) !== null);
    } finally {
      await module.close();
    }
  });
});

let time = 0;
const realNow = performance.now.bind(performance);
const lines: string[] = [];

/** A reporter on a clock that the test moves. */
function news() {
  performance.now = () => time;
  lines.length = 0;
  return new OutageReporter({ log: (line: string) => lines.push(line), warn: (line: string) => lines.push(line) });
}

afterEach(() => {
  performance.now = realNow;
});

describe('News of an outage', () => {
  const MINUTE = 60_000;

  it('an outage is logged once a minute while it lasts, with a sum', () => {
    const outage = news();
    for (time = 0; time <= 2.5 * MINUTE; time += 500) outage.failed(new LockUnavailableError('Down.'));
    outage.end('Up');
    expect(lines).toEqual([
      "A lock can't be acquired: Down.",
      'No locks for 60 s now, 121 calls failed so far. The last: Down.',
      'No locks for 2 min now, 241 calls failed so far. The last: Down.',
      'Up, after 3 min; 301 calls failed.',
    ]);
  });

  it('a lock that can not be renewed is logged once a minute, and not in an outage', () => {
    const outage = news();
    for (time = 0; time <= 1.5 * MINUTE; time += 500) outage.unrenewed(new LockUnavailableError('It refuses.'));
    time = 10 * MINUTE;
    outage.failed(new LockUnavailableError('Down.'));
    outage.unrenewed(new LockUnavailableError('Down.'));
    expect(lines).toEqual([
      ...Array(2).fill("A held lock can't be renewed, and is lost when its lease is over: It refuses."),
      "A lock can't be acquired: Down.",
    ]);
  });

  it('an outage is logged with the server that is gone, and another server does not end it', () => {
    const outage = news();
    time = 0;
    outage.failed(new LockUnavailableError('Down.'));
    outage.begin('Redis is gone', 'a');
    outage.end('Another one is back', 'b');
    time = 5_000;
    outage.end('Redis is back', 'a');
    outage.failed(new LockUnavailableError('Out of memory.'));
    time += 20_000;
    outage.failed(new LockUnavailableError('Out of memory.'));
    outage.begin('Redis is gone', 'a');
    outage.end('Redis is back', 'a');
    outage.succeeded();
    time += 1_000;
    outage.succeeded();
    expect(lines).toEqual([
      "A lock can't be acquired: Down.",
      'Redis is back, after 5.0 s; 1 call failed.',
      "A lock can't be acquired: Out of memory.",
      'Locks can be acquired again, after 20 s; 2 calls failed.',
    ]);
  });

  it('an outage is not logged for each call where some work and some fail', () => {
    const outage = news();
    for (time = 0; time <= MINUTE / 2; time += 500) {
      outage.failed(new LockUnavailableError('Wrong type.'));
      outage.succeeded();
    }
    expect(lines).toEqual(["A lock can't be acquired: Wrong type."]);
  });

  it('an outage of some keys only has two lines at first, then a sum each minute, until none has failed for a minute', () => {
    const outage = news();
    for (time = 0; time <= 2.5 * MINUTE; time += 250) {
      if (time % 3000 === 0) outage.failed(new LockUnavailableError('A master is down.'));
      else outage.succeeded();
    }
    for (const endsAt = time + 1.5 * MINUTE; time <= endsAt; time += 250) outage.succeeded();
    expect(lines).toEqual([
      "A lock can't be acquired: A master is down.",
      'Locks can be acquired again, after 0.3 s; 1 call failed.',
      "A lock can't be acquired: A master is down.",
      'Some locks have not been acquired for 60 s now, 21 calls failed so far. The last: A master is down.',
      'Some locks have not been acquired for 2 min now, 41 calls failed so far. The last: A master is down.',
      'Locks can be acquired again, after 2 min; 50 calls failed.',
    ]);
  });

  it.each([
    ['before calls fail', true],
    ['after the first calls that fail', false],
  ])('a server that goes away soon after another outage is in the log: it is noticed %s', (_when, isFirst) => {
    const outage = news();
    const fail = (error: string) => outage.failed(new LockUnavailableError(error));
    const run = (ms: number, call: () => void) => {
      for (const until = time + ms; time < until; time += 250) call();
    };
    time = 0;
    for (let burst = 0; burst < 2; burst++) {
      run(2_000, () => fail('Out of memory.'));
      run(8_000, () => outage.succeeded());
    }
    if (!isFirst) run(1_000, () => fail('No reply.'));
    outage.begin('Redis is gone.', 'a');
    run(20_000, () => fail('Redis is gone.'));
    outage.end('Redis is back', 'a');
    expect(lines).toEqual([
      "A lock can't be acquired: Out of memory.",
      'Locks can be acquired again, after 2.0 s; 8 calls failed.',
      "A lock can't be acquired: Out of memory.",
      `Locks can be acquired again, after 2.0 s; ${isFirst ? 8 : 12} calls failed.`,
      'Redis is gone.',
      'Redis is back, after 20 s; 80 calls failed.',
    ]);
  });

  it('a lock that can not be renewed is logged while calls work, also soon after an outage', () => {
    const outage = news();
    time = 0;
    outage.failed(new LockUnavailableError('Wrong type.'));
    outage.succeeded();
    outage.unrenewed(new LockUnavailableError('It refuses.'));
    expect(lines.at(-1)).toBe("A held lock can't be renewed, and is lost when its lease is over: It refuses.");
  });
});

describe('News of an outage that no call tells of any more', () => {
  const OOM = new LockUnavailableError('Out of memory.');
  const MINUTE = 60_000;

  it('a server that goes away later is in the log, and so are locks that can not be renewed', () => {
    const outage = news();
    outage.failed(OOM);
    time += 11_000;
    expect(outage.isLogged).toBe(false);
    outage.unrenewed(new LockUnavailableError('It refuses.'));
    outage.begin('Redis is gone.', 'a');
    expect(outage.isLogged).toBe(true);
    time += 5_000;
    outage.end('Redis is back', 'a');
    expect(lines).toEqual([
      "A lock can't be acquired: Out of memory.",
      "A held lock can't be renewed, and is lost when its lease is over: It refuses.",
      'Redis is gone.',
      'Redis is back, after 16 s; 1 call failed.',
    ]);
  });

  it('a question that goes on failing keeps none open after which calls work', () => {
    const outage = news();
    outage.failed(OOM);
    for (const until = time + 1_500; time < until; time += 250) {
      outage.succeeded();
      outage.questionFailed(new LockUnavailableError('The user lacks a right.'), false);
    }
    expect(lines).toEqual([
      "A lock can't be acquired: Out of memory.",
      expect.stringMatching(/^Locks can be acquired again, after 0\.0 s; \d calls failed\.$/),
    ]);
  });

  it('with a server that is gone, questions count though a call has worked', () => {
    const outage = news();
    outage.begin('Redis is gone.', 'a');
    outage.succeeded();
    const begunAt = time;
    for (; time <= begunAt + MINUTE; time += 1000)
      outage.questionFailed(new LockUnavailableError('Redis is gone.'), false);
    expect(lines).toEqual([
      'Redis is gone.',
      'Some locks have not been acquired for 60 s now, 61 calls failed so far. The last: Redis is gone.',
    ]);
  });

  it('of some keys, that goes on, questions have no line each', () => {
    const outage = news();
    const isReported: boolean[] = [];
    const [begunAt, pause] = [time, MINUTE / 2];
    for (; time < begunAt + 4 * pause; time += 250) {
      if ((time - begunAt) % pause === 0) outage.failed(OOM);
      else outage.succeeded();
      const question = new LockUnavailableError('A master is down.');
      outage.questionFailed(question, false);
      // The first failure alone may be all of it.
      if (time >= begunAt + pause) isReported.push(question.isReported);
    }
    expect(new Set(isReported)).toEqual(new Set([true]));
  });

  it('questions that may fail for the sake of their own key have a line a minute', () => {
    const outage = news();
    const isReported: boolean[] = [];
    for (const until = time + MINUTE; time < until; time += 250) {
      outage.failed(OOM);
      const question = new LockUnavailableError('The key is no lock.');
      outage.questionFailed(question, true);
      isReported.push(question.isReported);
    }
    expect(isReported).toEqual([false, ...Array<boolean>(isReported.length - 1).fill(true)]);
  });

  it('a call that fails much later begins another one, of which nobody knows how long the first one was', () => {
    const outage = news();
    outage.failed(OOM);
    time += 10 * MINUTE;
    outage.failed(OOM);
    time += 500;
    outage.succeeded();
    time += 1_000;
    outage.succeeded();
    expect(lines).toEqual([
      ...Array(2).fill("A lock can't be acquired: Out of memory."),
      'Locks can be acquired again, after 0.5 s; 1 call failed.',
    ]);
  });

  it('a job that runs each minute, now and then a little late, makes one outage', () => {
    const outage = news();
    for (const lateMs of [0, 13, 0, 1, 5]) {
      outage.failed(OOM);
      time += MINUTE + lateMs;
    }
    outage.succeeded();
    time += 1_000;
    outage.succeeded();
    expect(lines.filter((line) => line.startsWith('A lock'))).toHaveLength(1);
    expect(lines.at(-1)).toBe('Locks can be acquired again, after 5 min; 5 calls failed.');
  });

  it('a call that works much later does not say how long it was', () => {
    const outage = news();
    outage.failed(OOM);
    time += 10 * MINUTE;
    outage.succeeded();
    expect(lines).toEqual(["A lock can't be acquired: Out of memory.", 'Locks can be acquired again; 1 call failed.']);
  });

  it('the log still tells of one right after a call, such as for another key, has worked', () => {
    const outage = news();
    outage.failed(OOM);
    outage.succeeded();
    expect(outage.isLogged).toBe(true);
  });

  it('a call that fails long after one that has worked begins another one', () => {
    const outage = news();
    for (let blip = 0; blip < 2; blip++) {
      outage.failed(OOM);
      time += 500;
      outage.succeeded();
      time += 60 * MINUTE;
      expect(outage.isLogged).toBe(false);
    }
    outage.failed(OOM);
    expect(lines).toEqual([
      "A lock can't be acquired: Out of memory.",
      'Locks can be acquired again, after 0.5 s; 1 call failed.',
      "A lock can't be acquired: Out of memory.",
      'Locks can be acquired again, after 0.5 s; 1 call failed.',
      "A lock can't be acquired: Out of memory.",
    ]);
  });
});

describe('News of outages in a row', () => {
  it('a minute without any lock after one with some says since when there is none', () => {
    const outage = news();
    for (const until = time + 150_000; time <= until; time += 500) {
      outage.failed(new LockUnavailableError('Down.'));
      if (time <= until - 100_000) outage.succeeded();
    }
    expect(lines).toEqual([
      "A lock can't be acquired: Down.",
      'Some locks have not been acquired for 60 s now, 121 calls failed so far. The last: Down.',
      'No locks for 70 s now, 241 calls failed so far. The last: Down.',
    ]);
  });
});

describe('News of a subscription', () => {
  const lines: string[] = [];
  let subscriptions: SubscriptionReporter;

  beforeEach(() => {
    jest.useFakeTimers();
    lines.length = 0;
    subscriptions = new SubscriptionReporter({
      log: (line: string) => lines.push(line),
      warn: (line: string) => lines.push(line),
    });
  });
  afterEach(() => void jest.useRealTimers());

  it('a subscription that stays down for 2 s is logged, and when it is up again', () => {
    subscriptions.unsubscribed('a', 'Down.');
    jest.advanceTimersByTime(1_999);
    expect(lines).toEqual([]);
    jest.advanceTimersByTime(1);
    subscriptions.unsubscribed('a', 'Down for another reason.');
    jest.advanceTimersByTime(10_000);
    subscriptions.subscribed('a', 'Up.');
    expect(lines).toEqual(['Down.', 'Up.']);
  });

  it('a subscription is not logged that is up again by then, or whose server is down, whichever is down first', () => {
    subscriptions.unsubscribed('a', 'Down.');
    jest.advanceTimersByTime(1_000);
    subscriptions.subscribed('a', 'Up.');
    subscriptions.unsubscribed('a', 'Down.');
    subscriptions.serverDown('a');
    subscriptions.serverDown('b');
    subscriptions.unsubscribed('b', 'Down.');
    jest.advanceTimersByTime(60_000);
    expect([subscriptions.serverUp('a'), subscriptions.serverUp('b')]).toEqual([60_000, 60_000]);
    jest.advanceTimersByTime(1_999);
    subscriptions.subscribed('b', 'Up.');
    expect(lines).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(lines).toEqual(['Down.']);
  });

  it('a subscription is not logged any more when the app has closed', () => {
    subscriptions.unsubscribed('a', 'Down.');
    subscriptions.close();
    jest.advanceTimersByTime(60_000);
    expect(lines).toEqual([]);
  });
});
