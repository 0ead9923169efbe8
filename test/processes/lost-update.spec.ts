import { describe, expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { TestChild } from '../support/processes/child-process.js';
import { figures, LONG, sized } from '../support/lab.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';

const PROCESSES = sized(4, 8);
const TASKS = sized(25, 50);
const INCREMENTS = sized(100, 250);
const TOTAL = PROCESSES * TASKS * INCREMENTS;

describe('Lost updates', () => {
  let server: RedisServer;
  let redis: Redis;

  withRedis((one) => ({ server, redis } = one));

  async function race(mode: 'locked' | 'unlocked'): Promise<number> {
    await redis.set('counter', 0);
    const children = Array.from(
      { length: PROCESSES },
      () => new TestChild('increment.mjs', server.url, TASKS, INCREMENTS, mode),
    );
    await Promise.all(children.map((child) => child.message()));
    for (const child of children) child.send('go');
    const codes = await Promise.all(children.map((child) => child.exit()));
    expect(codes).toEqual(children.map(() => 0));
    return Number(await redis.get('counter'));
  }

  it(
    'a counter that several processes read and write back comes to the exact total under the lock',
    async () => {
      const startedAt = performance.now();
      const total = await race('locked');
      figures('Lost updates: read, await, write back', 'the exact total', {
        processes: PROCESSES,
        'callers in each': TASKS,
        increments: TOTAL,
        total: total,
        'took s': (performance.now() - startedAt) / 1000,
      });
      expect(total).toBe(TOTAL);
      expect(await redis.keys('lock:*')).toEqual([]);
    },
    LONG ? 600_000 : 120_000,
  );

  it('a counter that several processes read and write back loses updates without the lock', async () => {
    expect(await race('unlocked')).toBeLessThan(TOTAL);
  }, 60_000);
});
