import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { TestChild } from '../support/child-process.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

const PROCESSES = 4;
const TASKS = 25;
const INCREMENTS = 100;

describe('A counter that is read, awaited on and written back by four processes', () => {
  let server: RedisServer;
  let redis: Redis;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
  });

  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  async function race(mode: 'locked' | 'unlocked'): Promise<number> {
    await redis.set('counter', 0);
    const children = Array.from({ length: PROCESSES }, () => new TestChild('increment.mjs', server.url, TASKS, INCREMENTS, mode));
    await Promise.all(children.map((child) => child.message()));
    for (const child of children) child.send('go');
    const codes = await Promise.all(children.map((child) => child.exit()));
    expect(codes).toEqual(children.map(() => 0));
    return Number(await redis.get('counter'));
  }

  it('comes to the exact total under the lock', async () => {
    expect(await race('locked')).toBe(PROCESSES * TASKS * INCREMENTS);
    expect(await redis.keys('lock:*')).toEqual([]);
  }, 120_000);

  it('loses updates without it, so this test can fail', async () => {
    expect(await race('unlocked')).toBeLessThan(PROCESSES * TASKS * INCREMENTS);
  }, 60_000);
});
