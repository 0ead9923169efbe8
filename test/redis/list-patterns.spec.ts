import { expect, it } from '@jest/globals';
import type { Redis } from 'ioredis';
import { globMatcher } from '../../lib/core/list/glob.js';
import { withRedis } from '../support/redis/with-redis.js';

let redis: Redis;
withRedis((one) => ({ redis } = one));

/** Numbers that are the same each time. */
function random(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state * 1103515245 + 12345) % 2 ** 31;
    return Math.floor((state / 2 ** 31) * below);
  };
}

it('a pattern matches the keys that it matches in Redis', async () => {
  const next = random(18);
  const text = (characters: string, longest: number) =>
    Array.from({ length: 1 + next(longest) }, () => characters[next(characters.length)]).join('');
  const keys = [...new Set(Array.from({ length: 400 }, () => text('abc-]^*\\', 5)))];
  await redis.mset(...keys.flatMap((key) => [key, '1']));
  const patterns = [
    '*',
    '?',
    '[^a]*',
    'a[b',
    'a\\',
    '[a-c]b',
    '[c-a]b',
    '[]',
    '[^]*',
    '*a*b*',
    '[\\]]',
    'a[b-',
    '**',
    '[a-]',
  ];
  for (let count = 0; count < 2000; count++) patterns.push(text('abc-]^*?[\\', 7));
  for (const pattern of patterns) {
    const found = (await redis.keys(pattern)).sort();
    const isMatch = globMatcher(pattern);
    expect({ pattern, keys: keys.filter(isMatch).sort() }).toEqual({ pattern, keys: found });
  }
});

it('a pattern counts characters, not bytes, and takes no time that grows with the number of its stars', () => {
  expect(globMatcher('?')('é')).toBe(true);
  expect(globMatcher('a?c')('a😀c')).toBe(true);
  expect(globMatcher('[😀-😂]')('😁')).toBe(true);
  const begin = process.cpuUsage();
  expect(globMatcher('*a'.repeat(500))(`${'a'.repeat(1023)}b`)).toBe(false);
  const { user, system } = process.cpuUsage(begin);
  expect((user + system) / 1000).toBeLessThan(1000);
});
