import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type INestApplicationContext, Logger } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { type ForceUnlockOptions, type LockEvent, LockService, RedisLockModule } from 'nest-redis-lock';
import type { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';

const KEY = 'account:42';
const FORCED = { by: 'ops@example.com', reason: 'stuck since noon' };

describe('A release by force leaves a trace', () => {
  let server: RedisServer;
  let redis: Redis;
  let apps: INestApplicationContext[];
  let holder: LockService;
  let operator: LockService;
  let lines: string[];
  let ofHolder: LockEvent[];
  let ofOperator: LockEvent[];

  withRedis((one) => ({ server, redis } = one));

  const start = async () => {
    const app = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ connection: server.url })],
    }).compile();
    await app.init();
    const events: LockEvent[] = [];
    app.get(LockService).events.subscribe((event) => events.push(event));
    return { app, locks: app.get(LockService), events };
  };

  beforeEach(async () => {
    const [one, other] = [await start(), await start()];
    apps = [one.app, other.app];
    [holder, operator] = [one.locks, other.locks];
    [ofHolder, ofOperator] = [one.events, other.events];
    // They hear of each other by messages.
    await until(async () => ((await redis.pubsub('CHANNELS', '*')) as string[]).length === 2);
    lines = [];
    Logger.overrideLogger({ log: () => undefined, error: () => undefined, warn: (line: string) => lines.push(line) });
  });

  afterEach(async () => {
    Logger.overrideLogger(false);
    await Promise.all(apps.map((app) => app.close()));
  });

  const lost = () => ofHolder.filter((event) => event.type === 'lost');
  const forced = () => ofOperator.filter((event) => event.type === 'forced');

  it.each<[string, (token: string) => ForceUnlockOptions]>([
    ['whoever has it', () => FORCED],
    ['from one token', (token) => ({ ...FORCED, token })],
  ])('both processes log who took it %s, and why, with key and token; so do the events', async (_, options) => {
    const lock = await holder.lock(KEY, { label: 'report' });
    const { token, fence } = lock;
    expect(await operator.forceUnlock(KEY, options(token))).toBe(true);
    await until(() => lost().length > 0);
    expect(forced()).toEqual([
      { type: 'forced', keys: [KEY], ...FORCED, token: options(token).token, tokens: [token] },
    ]);
    expect(lost()).toMatchObject([{ keys: [KEY], label: 'report', reason: 'taken', forced: FORCED, token }]);
    const why = '"ops@example.com" took it away with forceUnlock(), because "stuck since noon".';
    const [ofTheHolder, ...others] = lines.filter((line) => line.startsWith('Lost'));
    expect(ofTheHolder!.replace(/after \d+ ms/, 'after 1 ms')).toBe(
      `Lost lock "${KEY}" for "report" after 1 ms: ${why} Its token was "${token}", its fence ${fence}.`,
    );
    expect(others).toEqual([]);
    expect(lines.filter((line) => !line.startsWith('Lost'))).toEqual([
      `Released lock "${KEY}" by force (token "${token}"): ${why}`,
    ]);
  });

  it('all holders of a shared key are named, and each logs its own loss, but not once more for nested calls', async () => {
    const readers = await Promise.all([1, 2].map(() => holder.lock(KEY, { mode: 'read' })));
    const tokens = readers.map(({ token }) => token);
    const nested = holder.withLock(
      'another',
      () => holder.withLock('another', () => until(() => lost().length === 4).then(() => 'done'), { onLost: 'ignore' }),
      { onLost: 'ignore' },
    );
    await until(() => ofHolder.some((event) => event.type === 'acquired' && event.nested));
    await operator.forceUnlock(KEY);
    await operator.forceUnlock('another', { by: 'a "quoted"\nname' });
    expect(await nested).toBe('done');
    expect([...forced()[0]!.tokens].sort()).toEqual([...tokens].sort());
    expect(
      lost()
        .filter(({ keys }) => keys[0] === KEY)
        .map(({ token }) => token)
        .sort(),
    ).toEqual([...tokens].sort());
    const losses = lines.filter((line) => line.startsWith('Lost'));
    expect(
      losses.filter((line) => line.includes(': somebody took it away with forceUnlock(). Its token')),
    ).toHaveLength(2);
    expect(losses.filter((line) => line.includes(': "a \\"quoted\\"\\nname" took it away'))).toHaveLength(1);
    expect(losses).toHaveLength(3);
  });

  it('a release that finds nobody leaves no trace', async () => {
    const lock = await holder.lock(KEY);
    expect(await operator.forceUnlock(KEY, { token: 'somebody:1:else', ...FORCED })).toBe(false);
    expect(await lock.unlock()).toBe(true);
    expect(await operator.forceUnlock(KEY, FORCED)).toBe(false);
    expect([...lines, ...forced(), ...lost()]).toEqual([]);
  });

  it('a holder of another tool is named by what it wrote', async () => {
    await redis.set(`lock:${KEY}`, 'cron\n7', 'PX', 60_000);
    expect(await operator.forceUnlock(KEY, FORCED)).toBe(true);
    expect(forced()).toMatchObject([{ tokens: ['cron\n7'] }]);
    expect(lines).toEqual([expect.stringContaining('(token "cron\\n7")')]);
  });
});
