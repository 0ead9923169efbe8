import { expect } from '@jest/globals';
import { HOLDERS_OF } from '../../../lib/redis/lua/holders-of.script.js';
import { INSPECT } from '../../../lib/redis/lua/inspect.script.js';
import { PUBLISH } from '../../../lib/redis/lua/publish.script.js';
import { ALIVE_MS } from '../../../lib/store/lock-store.js';
import { A, ALIVE, B, HOLDERS, LEASE, names, QUEUE } from './script-bench.js';
import {
  COUNTER,
  MINE,
  mayNot,
  THEIRS,
  NEXT,
  LAST,
  waiter,
  sha1,
  outOfMemory,
  type ScriptCases,
} from './script-fixtures.js';

/** What an operation does with its keys. */
export const OPERATION_CASES: ScriptCases = {
  'keep a lock for as long as asked when the server is out of memory': async ({ redis, locks }) => {
    await locks(['try', MINE, 1000, 'a'], ['try', MINE, LEASE, 'b']);
    await outOfMemory(redis, async () =>
      expect(await locks(['keep', MINE, LEASE, 'a'], ['keep', MINE, 1000, 'b'])).toEqual([1, 1]),
    );
    expect(await redis.pttl(A)).toBeGreaterThan(2000);
    expect(await redis.pttl(B)).toBeLessThanOrEqual(1000);
    expect(await redis.get(A)).toBe(`${MINE} kept`);
  },

  'run the other operations of a call when one key is no lock': async ({ redis, locks }) => {
    await redis.hset(A, 'no', 'lock');
    for (const what of ['try', 'poll', 'queue']) {
      const replies = (await locks([what, MINE, LEASE, 'a'], [what, MINE, LEASE, 'b'])) as unknown[];
      expect(String(replies[0])).toContain('WRONGTYPE');
      expect(replies[1]).toEqual(expect.any(Number));
      expect(await redis.exists(QUEUE)).toBe(0);
      await redis.del(names.lock('b'));
    }
  },

  'take no lock for gone when the user may not read it': async ({ redis, locks, locksBy, without }) => {
    await locks(['try', MINE, LEASE, 'a']);
    const limited = await without('-get');
    for (const verb of ['release', 'keep', 'shorten', 'reserve'])
      await expect(locksBy(limited, [verb, MINE, LEASE, 'a'])).rejects.toThrow(mayNot('get'));
    expect(await redis.get(A)).toBe(MINE);
  },

  'tell a holder that a caller polls for its lock': async ({ locks, listens }) => {
    const heard = await listens('they');
    await locks(['try', THEIRS, LEASE, 'a']);
    await locks(['try', MINE, LEASE, 'a']);
    expect(await heard()).toEqual([]);
    await locks(['poll', MINE, LEASE, 'a']);
    expect(await heard()).toEqual([`contended ${THEIRS}`]);
  },

  'renew a lock when fences are reserved for it': async ({ redis, locks }) => {
    await locks(['try', MINE, 1000, 'a']);
    expect(await locks(['reserve', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
  },

  'never shorten a lock that its holder asks for again': async ({ redis, locks }) => {
    await locks(['try', MINE, LEASE, 'a']);
    expect(await locks(['try', MINE, 1000, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
  },

  'hold earlier keys for a short time while the caller waits for a later one, then all for the lease': async ({
    redis,
    locks,
    share,
  }) => {
    await locks(['try', THEIRS, LEASE, 'b']);
    expect(await locks(['queue 2 exclusive', MINE, LEASE, 'a', 'b'])).toEqual([
      THEIRS,
      expect.any(Number),
      0,
      expect.any(Number),
    ]);
    expect(await redis.get(A)).toBe(MINE);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(ALIVE_MS);
    await redis.del(B);
    expect(await locks(['queue 2 exclusive', MINE, LEASE, 'a', 'b'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(ALIVE_MS);
    await redis.del(A);
    await share('read', { [LAST]: 1000 });
    await locks(['queue 2 read', NEXT, LEASE, 'a', 'b']);
    expect(Number(await redis.zscore(HOLDERS, NEXT))).toBeLessThanOrEqual(Date.now() + ALIVE_MS);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(ALIVE_MS);
  },

  'end a kept lock after the time it was given': async ({ redis, locks, share }) => {
    await locks(['try', MINE, LEASE, 'a']);
    expect(await locks(['keep', MINE, 1000, 'a'])).toBe(1);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(1000);
    expect((await redis.keys('*')).sort()).toEqual([A, COUNTER].sort());
    await redis.del(A);
    await share('read', { [MINE]: LEASE });
    expect(await locks(['keep 1 read', MINE, 1000, 'a'])).toBe(1);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(1000);
    expect(await redis.pttl(HOLDERS)).toBeLessThanOrEqual(1000);
  },

  'take a key only from the holder that was seen, and tell it who did so and why': async ({
    redis,
    run,
    locks,
    listens,
  }) => {
    const heard = await listens('me');
    await locks(['try', MINE, LEASE, 'a']);
    const [seen] = (await run(HOLDERS_OF, names.ofKey('a'), [])) as string[];
    expect(seen).toBe(sha1(MINE));
    expect(await locks(['force', sha1(THEIRS), 0, 'a'])).toBe(0);
    expect(await locks(['force', sha1(THEIRS), 0, 'b'])).toBe(0);
    expect(await redis.get(A)).toBe(MINE);
    expect(await heard()).toEqual([]);
    expect(await locks(['force 1 who-and-why', seen!, 0, 'a'])).toBe(1);
    expect(await heard()).toEqual(['lost me.1 who-and-why']);
    expect(await redis.exists(A)).toBe(0);
  },

  'show only live holders and waiters': async ({ redis, run, share, queue }) => {
    await share('read', { [MINE]: LEASE, [THEIRS]: -1 });
    await queue(waiter(NEXT), waiter(LAST));
    await redis.zadd(ALIVE, Date.now() - 1000, NEXT);
    const [value, , holders, waiters] = (await run(INSPECT, names.ofKey('a'), [])) as unknown[];
    expect(value).toBe('nest-redis-lock:read');
    expect(holders).toEqual([MINE, expect.anything()]);
    expect(waiters).toEqual([waiter(LAST)]);
    await redis.zadd(HOLDERS, Date.now() - 1, MINE);
    expect(await run(INSPECT, names.ofKey('a'), [])).toBeNull();
  },

  'send a message to a process on its channel': async ({ run, listens }) => {
    const heard = await listens('next');
    expect(await run(PUBLISH, [], [names.wakeChannel('next'), 'something'])).toBe(1);
    expect(await heard()).toEqual(['something']);
  },

  'shorten what a token holds, and nothing else': async ({ redis, locks, share }) => {
    await locks(['try', MINE, LEASE, 'a']);
    expect(await locks(['shorten', THEIRS, 1000, 'a'])).toBe(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
    expect(await locks(['shorten', MINE, 1000, 'a'])).toBe(1);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(1000);
    await share('read', { [MINE]: LEASE, [THEIRS]: LEASE });
    const before = Date.now();
    expect(await locks(['shorten', MINE, 1000, 'a'])).toBe(1);
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeLessThanOrEqual(Date.now() + 1000);
    expect(Number(await redis.zscore(HOLDERS, THEIRS))).toBeGreaterThan(before + 1000);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
  },
};
