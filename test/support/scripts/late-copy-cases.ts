import { createHash } from 'node:crypto';
import { expect } from '@jest/globals';
import { RENEW } from '../../../lib/redis/lua/renew.script.js';
import { A, B, HOLDERS, LEASE, QUEUE, type ScriptBench } from './script-bench.js';
import { callsIn, MINE, NEXT, THEIRS, type ScriptCases } from './script-fixtures.js';

/** What may have become of a lock that `MINE` asked for. */
const STATES: Readonly<Record<string, (bench: ScriptBench) => Promise<unknown>>> = {
  gone: async ({ locks }) => locks(['try', MINE, LEASE, 'a'], ['release', MINE, 0, 'a']),
  'taken by somebody else': async ({ locks }) => locks(['try', THEIRS, 1000, 'a']),
  'shared by others': async ({ locks }) => locks(['try 1 read', THEIRS, 1000, 'a']),
  kept: async ({ locks }) => locks(['try', MINE, LEASE, 'a'], ['keep', MINE, 1000, 'a']),
  'kept, of a reader': async ({ locks }) => locks(['try 1 read', MINE, LEASE, 'a'], ['keep', MINE, 1000, 'a']),
  'kept, of a reader beside another': async ({ locks }) =>
    locks(['try 1 read', MINE, LEASE, 'a'], ['try 1 read', THEIRS, 1000, 'a'], ['keep', MINE, 1000, 'a']),
  'kept, of a permit': async ({ locks }) => locks(['try 1 permits:2', MINE, LEASE, 'a'], ['keep', MINE, 1000, 'a']),
};

/** Commands it may have sent before that, which must do nothing now. */
const AFTER_THE_END: Readonly<Record<string, (bench: ScriptBench) => Promise<unknown>>> = {
  renewal: ({ run }) => run(RENEW, [A], [MINE, LEASE]),
  ...Object.fromEntries(
    ['reserve', 'release', 'cancel', 'cancel 1 read', 'keep', 'upgrade 1 1', 'downgrade 1 0', 'downgrade 1 1'].map(
      (what) => [what, ({ locks }: ScriptBench) => locks([what, MINE, LEASE, 'a'])],
    ),
  ),
  force: ({ locks }) =>
    locks(['force', createHash('sha1').update(MINE).digest('hex'), 0, 'a'], ['force', MINE, 0, 'a']),
};

/** Everything about `a`, except for how long it lasts. */
const seen = async ({ redis }: ScriptBench) => ({
  value: await redis.get(A),
  holders: await redis.zrange(HOLDERS, '0', '-1', 'WITHSCORES'),
  queue: await redis.zrange(QUEUE, '0', '-1'),
});

async function changesNothing(bench: ScriptBench, late: () => Promise<unknown>, what: string): Promise<void> {
  const [before, lasts] = [await seen(bench), await bench.redis.pttl(A)];
  await late();
  expect({ what, ...(await seen(bench)) }).toEqual({ what, ...before });
  expect(await bench.redis.pttl(A)).toBeLessThanOrEqual(lasts);
}

/** What a copy of a command does that arrives after everything else, also after its reply. */
export const LATE_COPY_CASES: ScriptCases = {
  'change nothing for a command that arrives after its lock has ended, whatever became of the key': async (bench) => {
    for (const [state, begin] of Object.entries(STATES)) {
      for (const [what, late] of Object.entries(AFTER_THE_END)) {
        await bench.redis.flushall();
        await begin(bench);
        await changesNothing(bench, () => late(bench), `${what} when it is ${state}`);
      }
    }
  },

  'make a late acquire wait for a kept lock like any other': async ({ redis, locks }) => {
    for (const [state, begin] of Object.entries(STATES).filter(([state]) => /^kept(, of a permit)?$/.test(state))) {
      await redis.flushall();
      await begin({ redis, locks } as ScriptBench);
      const kind = state === 'kept' ? 'exclusive' : 'read';
      expect(await locks([`try 1 ${kind}`, MINE, LEASE, 'a'])).toEqual([
        `${MINE} kept`,
        expect.any(Number),
        0,
        expect.any(Number),
      ]);
      expect(await locks([`queue 1 ${kind}`, MINE, LEASE, 'a'])).toEqual([
        `${MINE} kept`,
        expect.any(Number),
        0,
        expect.any(Number),
      ]);
      expect(await redis.pttl(A)).toBeLessThanOrEqual(1000);
    }
  },

  'reply to a second keep as to the first, and keep the lock no longer': async (bench) => {
    for (const kind of ['exclusive', 'read', 'permits:2']) {
      await bench.redis.flushall();
      await bench.locks([`try 1 ${kind}`, MINE, LEASE, 'a']);
      expect(await bench.locks(['keep', MINE, 1000, 'a'])).toBe(1);
      await changesNothing(bench, async () => expect(await bench.locks(['keep', MINE, LEASE, 'a'])).toBe(1), kind);
    }
  },

  'take a kept lock by force, by what stands under the key': async ({ redis, locks, listens }) => {
    const heard = await listens('me');
    const kept = `${MINE} kept`;
    await locks(['try', MINE, LEASE, 'a'], ['keep', MINE, LEASE, 'a']);
    expect(await locks(['force', createHash('sha1').update(kept).digest('hex'), 0, 'a'])).toBe(1);
    await locks(['try 1 read', MINE, LEASE, 'a'], ['keep', MINE, LEASE, 'a']);
    expect(await locks(['force', kept, 0, 'a'])).toBe(1);
    expect(await redis.exists(A)).toBe(0);
    expect(await heard()).toEqual([`lost ${kept} exclusive`, `lost ${kept} exclusive`]);
  },

  'take a share that a late copy acquired from its token with the next keep': async ({ redis, locks }) => {
    for (const kind of ['read', 'permits:2']) {
      await locks([`try 1 ${kind}`, MINE, LEASE, 'a'], ['keep', MINE, 1000, 'a'], [`try 1 ${kind}`, MINE, LEASE, 'a']);
      expect(await locks(['keep', MINE, 1000, 'a'])).toBe(1);
      expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual([`${MINE} kept`]);
      await redis.flushall();
    }
  },

  'keep the lock of an upgraded reader as a read lock, and let in waiting readers': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    await listens('next');
    await locks(['try 1 read', MINE, LEASE, 'a'], ['upgrade 1 1', MINE, LEASE, 'a']);
    await queue(`${NEXT} ${LEASE} read`);
    expect(await locks(['keep', MINE, 1000, 'a'])).toBe(1);
    expect((await redis.zrange(HOLDERS, '0', '-1')).sort()).toEqual([`${MINE} kept`, NEXT].sort());
    expect(await redis.get(A)).toBe('nest-redis-lock:read');
    expect(Number(await redis.zscore(HOLDERS, `${MINE} kept`))).toBeLessThanOrEqual(Date.now() + 1000);
  },

  'keep others out while a reader is the writer, for the longer of its leases': async ({ redis, locks }) => {
    await locks(['try 1 read', MINE, 1000, 'a']);
    expect(await locks(['upgrade 1 1', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.get(A)).toBe('nest-redis-lock:write:1');
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
    expect(await locks(['upgrade 1 2', MINE, 1000, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
    for (const kind of ['read', 'exclusive', 'permits:2']) {
      expect(await locks([`try 1 ${kind}`, THEIRS, LEASE, 'a'])).toEqual([
        MINE,
        expect.any(Number),
        0,
        expect.any(Number),
      ]);
    }
    expect(await locks(['reserve', MINE, LEASE, 'a'])).toBe(0);
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.exists(A, HOLDERS)).toBe(0);
  },

  'refuse an upgrade of a key that others share, of a permit, and of keys that are not all held': async ({
    redis,
    locks,
  }) => {
    await locks(['try 1 permits:2', MINE, LEASE, 'a']);
    expect(await locks(['upgrade 1 1', MINE, LEASE, 'a'])).toBe(0);
    expect(await redis.get(A)).toBe('nest-redis-lock:permits:2');
    await redis.del(A);
    await locks(['try 1 read', MINE, LEASE, 'a'], ['try', THEIRS, LEASE, 'b']);
    for (const keys of [
      ['a', 'b'],
      ['b', 'a'],
    ])
      expect(await locks(['upgrade 2 1', MINE, LEASE, ...keys])).toBe(0);
    expect(await redis.mget(A, B)).toEqual([`nest-redis-lock:read 1 ${MINE}`, THEIRS]);
  },

  'ignore upgrades and downgrades that are older than the last one': async (bench) => {
    const { redis, locks } = bench;
    const late = (what: string) => changesNothing(bench, () => locks([what, MINE, 1, 'a']), what);
    await locks(['try', MINE, LEASE, 'a'], ['downgrade 1 0', MINE, LEASE, 'a']);
    await late('downgrade 1 0');
    await locks(['upgrade 1 2', MINE, LEASE, 'a']);
    for (const what of ['downgrade 1 0', 'downgrade 1 1', 'upgrade 1 1']) await late(what);
    expect(await locks(['upgrade 1 1', MINE, LEASE, 'a'])).toBe(0);
    expect(await locks(['upgrade 1 2', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await locks(['upgrade 1 3', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.get(A)).toBe('nest-redis-lock:write:3');
    // The upgrade that it ends may come later.
    expect(await locks(['downgrade 1 4', MINE, LEASE, 'a'])).toBe(1);
    for (const number of [0, 1, 2, 3, 4]) {
      expect(await locks([`upgrade 1 ${number}`, MINE, LEASE, 'a'])).toBe(0);
      await late(`upgrade 1 ${number}`);
      await late(`downgrade 1 ${number}`);
    }
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 4 ${MINE}`);
    expect(await locks(['upgrade 1 5', MINE, LEASE, 'a'])).toBeGreaterThan(0);
  },

  'ignore an upgrade that arrives after its own end, also when it is the first': async ({ locks }) => {
    await locks(['try 1 read', MINE, LEASE, 'a']);
    expect(await locks(['downgrade 1 1', MINE, LEASE, 'a'])).toBe(1);
    expect(await locks(['upgrade 1 1', MINE, LEASE, 'a'])).toBe(0);
    expect(await locks(['upgrade 1 2', MINE, LEASE, 'a'])).toBeGreaterThan(0);
  },

  'refuse to downgrade a permit': async (bench) => {
    const heard = await bench.listens('next');
    await bench.locks(['try 1 permits:2', MINE, LEASE, 'a']);
    await bench.queue(`${NEXT} ${LEASE} read`);
    await changesNothing(bench, () => bench.locks(['downgrade 1 1', MINE, LEASE, 'a']), 'downgrade');
    expect(await heard()).toEqual([]);
  },

  'remember the ended upgrades of each reader until its lock ends': async ({ redis, locks }) => {
    await locks(['try 1 read', MINE, LEASE, 'a'], ['try 1 read', THEIRS, LEASE, 'a']);
    expect(await locks(['upgrade 1 1', MINE, LEASE, 'a'])).toBe(0);
    expect(await locks(['upgrade 1 7', THEIRS, LEASE, 'a'])).toBe(0);
    await locks(['try 1 read', NEXT, LEASE, 'a']);
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 1 ${MINE} 7 ${THEIRS}`);
    await locks(['release', MINE, 0, 'a']);
    expect(await locks(['upgrade 1 2', NEXT, LEASE, 'a'])).toBe(0);
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 7 ${THEIRS} 2 ${NEXT}`);
    await locks(['release', NEXT, 0, 'a']);
    expect(await locks(['upgrade 1 7', THEIRS, LEASE, 'a'])).toBe(0);
    expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual([THEIRS]);
    expect(await locks(['upgrade 1 8', THEIRS, LEASE, 'a'])).toBeGreaterThan(0);
    await locks(['release', THEIRS, 0, 'a']);
    expect(await redis.exists(A, HOLDERS)).toBe(0);
  },

  'note each reader once, whatever is noted before and behind it': async ({ redis, locks }) => {
    const readers = [MINE, THEIRS, NEXT] as const;
    await locks(...readers.map((token) => ['try 1 read', token, LEASE, 'a'] as const));
    await locks(...readers.map((token) => ['upgrade 1 1', token, LEASE, 'a'] as const));
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 1 ${MINE} 1 ${THEIRS} 1 ${NEXT}`);
    await locks(['upgrade 1 12', THEIRS, LEASE, 'a']);
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 1 ${MINE} 1 ${NEXT} 12 ${THEIRS}`);
    await locks(['upgrade 1 2', MINE, LEASE, 'a']);
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 1 ${NEXT} 12 ${THEIRS} 2 ${MINE}`);
    await locks(['upgrade 1 13', THEIRS, LEASE, 'a']);
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 1 ${NEXT} 2 ${MINE} 13 ${THEIRS}`);
  },

  'look at few of the ended upgrades of other readers, however many there are': async ({ redis, locks }) => {
    const readers = Array.from({ length: 300 }, (_, index) => `reader.${index}`);
    const all = (what: string) => locks(...readers.map((token) => [what, token, LEASE, 'a'] as const));
    await all('try 1 read');
    for (const what of ['upgrade 1 1', 'upgrade 1 3', 'upgrade 1 2']) {
      await redis.config('RESETSTAT');
      expect(await all(what)).toEqual(readers.map(() => 0));
      expect((await callsIn(redis))('zscore')).toBeLessThan(10 * readers.length);
    }
    // Each is known by its whole token, and its last number.
    for (const token of [readers[1]!, readers[29]!, readers[299]!]) {
      const others = readers.filter((other) => other !== token);
      const [before, lasts] = [await redis.get(A), await redis.dumpBuffer(HOLDERS)];
      await locks(...others.map((other) => ['release', other, 0, 'a'] as const));
      expect(await locks(['upgrade 1 3', token, LEASE, 'a'])).toBe(0);
      expect(await locks(['upgrade 1 4', token, LEASE, 'a'])).toBeGreaterThan(0);
      await redis.set(A, before!, 'PX', LEASE);
      await redis.restore(HOLDERS, LEASE, lasts, 'REPLACE');
    }
  },

  'forget the ended upgrades of readers that are gone, also while others stay': async ({ redis, locks }) => {
    const stay = ['stay.1', 'stay.2', 'stay.3'];
    await locks(...stay.map((token) => ['try 1 read', token, LEASE, 'a'] as const));
    await locks(...stay.map((token) => ['upgrade 1 1', token, LEASE, 'a'] as const));
    for (let round = 0; round < 200; round++) {
      const token = `gone.${round}`;
      const [, refused] = (await locks(
        ['try 1 read', token, LEASE, 'a'],
        ['upgrade 1 1', token, LEASE, 'a'],
        ['release', token, 0, 'a'],
      )) as unknown[];
      expect(refused).toBe(0);
    }
    const value = await redis.get(A);
    expect(value!.length).toBeLessThan(200);
    for (const token of stay) expect(value).toContain(` 1 ${token}`);
  },

  'handle the other keys of an operation, and of its call, when one key is in error': async ({ redis, locks }) => {
    for (const bad of [0, 1, 2]) {
      await redis.flushall();
      const keys = ['a', 'b', 'c'];
      await locks(['try 3', MINE, LEASE, ...keys], ['try', THEIRS, LEASE, 'd']);
      await redis.set(`{lock:${keys[bad]}}:queue`, 'not ours');
      for (const first of [
        ['release 3', MINE, 0, ...keys],
        ['try 3', NEXT, LEASE, ...keys],
        ['upgrade 3 1', MINE, LEASE, ...keys],
      ] as const) {
        const replies = (await locks(first, ['release', THEIRS, 0, 'd'], ['try', THEIRS, LEASE, 'd'])) as unknown[];
        if (first[0] !== 'upgrade 3 1') expect(String(replies[0])).toContain('WRONGTYPE');
        expect(replies.slice(1)).toEqual([1, expect.any(Number)]);
      }
      expect(await redis.exists(...keys.filter((_, index) => index !== bad).map((key) => `lock:${key}`))).toBe(0);
    }
  },

  'release a lock when the server is out of memory, though the same call also asks for one': async ({
    redis,
    locks,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await redis.config('SET', 'maxmemory', 1);
    try {
      const replies = (await locks(['try', THEIRS, LEASE, 'b'], ['release', MINE, 0, 'a'])) as unknown[];
      expect(String(replies[0])).toContain('OOM');
      expect(replies[1]).toBe(1);
    } finally {
      await redis.config('SET', 'maxmemory', 0);
    }
    expect(await redis.exists(A)).toBe(0);
  },

  'fail the whole call for an error of the server': async ({ locks, locksBy, without }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await expect(
      locksBy(await without('-zadd'), ['try 1 read', MINE, LEASE, 'b'], ['release', MINE, 0, 'a']),
    ).rejects.toThrow(/can't run this command|no permissions/);
  },
};
