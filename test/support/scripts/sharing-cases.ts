import { expect } from '@jest/globals';
import { A, HOLDERS, LEASE, QUEUE } from './script-bench.js';
import { MINE, THEIRS, NEXT, LAST, waiter, type ScriptCases } from './script-fixtures.js';

/** Readers, writers and permits. */
export const SHARING_CASES: ScriptCases = {
  'treat a shared key as free when the leases of all its holders have ended': async ({ redis, locks, share }) => {
    await share('read', { [THEIRS]: -1 });
    expect(await locks(['release', MINE, 0, 'a'])).toBe(0);
    expect(await redis.exists(A)).toBe(0);
    await share('read', { [THEIRS]: -1 });
    expect(await locks(['try', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.get(A)).toBe(MINE);
  },

  "let readers in when the writer ahead of them can't be notified": async ({ locks, share, queue }) => {
    await share('read', { [THEIRS]: LEASE });
    await queue(waiter(NEXT));
    expect(await locks(['try 1 read', MINE, LEASE, 'a'])).toEqual(expect.any(Number));
  },

  'let in the readers behind a writer that gives up': async ({ redis, locks, share, queue, listens }) => {
    const [, heard] = [await listens('next'), await listens('last')];
    await share('read', { [THEIRS]: LEASE });
    await queue(waiter(NEXT), waiter(LAST, 'read'));
    expect(await locks(['cancel', NEXT, LEASE, 'a'])).toBe(0);
    expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual(expect.arrayContaining([THEIRS, LAST]));
    expect(await heard()).toEqual([expect.stringMatching(/^granted last\.1 /)]);
  },

  'refuse to queue for a number of permits that differs from the one in use': async ({
    redis,
    locks,
    share,
    queue,
  }) => {
    await share('permits:3', { [THEIRS]: LEASE });
    expect(await locks(['queue 1 permits:2', MINE, LEASE, 'a'])).toEqual(['permits:3']);
    expect(await redis.exists(QUEUE)).toBe(0);
    await queue(waiter(MINE, 'permits:2'));
    expect(await locks(['queue 1 permits:2', MINE, LEASE, 'a'])).toEqual(['permits:3']);
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  'keep a permit without letting in a reader': async ({ redis, locks, queue, listens }) => {
    const heard = await listens('next');
    await locks(['try 1 permits:2', MINE, LEASE, 'a']);
    await queue(waiter(NEXT, 'read'));
    expect(await locks(['keep', MINE, LEASE, 'a'])).toBe(1);
    expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual([`${MINE} kept`]);
    expect(await heard()).toEqual([`offered ${NEXT}`]);
  },

  'renew a share of a key when its holder asks for it again': async ({ redis, locks, share }) => {
    await share('read', { [MINE]: 1000 });
    await redis.pexpire(A, 1000);
    expect(await locks(['try 1 read', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeGreaterThan(Date.now() + 1000);
  },

  'let in the next readers once, when a writer becomes a reader': async ({ redis, locks, queue, listens }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await listens('next');
    await queue(waiter(NEXT, 'read'));
    expect(await locks(['downgrade', MINE, LEASE, 'a'])).toBe(1);
    expect((await redis.zrange(HOLDERS, '0', '-1')).sort()).toEqual([MINE, NEXT].sort());
    await redis.zadd(HOLDERS, Date.now() + 1000, MINE);
    expect(await locks(['downgrade', MINE, LEASE, 'a'])).toBe(1);
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeLessThanOrEqual(Date.now() + 1000);
  },
};
