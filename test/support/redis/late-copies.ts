import { createHash } from 'node:crypto';
import { expect } from '@jest/globals';
import { RENEW } from '../../../lib/redis/lua/renew.script.js';
import { A, B, HOLDERS, LEASE, QUEUE, type ScriptBench } from '../scripts/script-bench.js';

const [MINE, THEIRS, NEXT] = ['me.1', 'they.1', 'next.1'];

/** What came of a lock that `MINE` asked for, and of what it asked for since. Both are brought about by commands alone. */
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

/** What it may have asked for before, and must do nothing now. */
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

/** All of `a`, but for how long it still lasts. */
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

/** What a copy of a command does that arrives after all else, and after its answer. */
export const LATE_COPIES: Readonly<Record<string, (bench: ScriptBench) => Promise<void>>> = {
  'what arrives after its lock has ended changes nothing, whatever came of the key': async (bench) => {
    for (const [state, begin] of Object.entries(STATES)) {
      for (const [what, late] of Object.entries(AFTER_THE_END)) {
        await bench.redis.flushall();
        await begin(bench);
        await changesNothing(bench, () => late(bench), `${what} when it is ${state}`);
      }
    }
  },

  'an acquire that arrives late does not have what is kept, and waits for it like anybody': async ({
    redis,
    locks,
  }) => {
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

  'what is kept twice is answered as the first time, and lasts no longer': async (bench) => {
    for (const kind of ['exclusive', 'read', 'permits:2']) {
      await bench.redis.flushall();
      await bench.locks([`try 1 ${kind}`, MINE, LEASE, 'a']);
      expect(await bench.locks(['keep', MINE, 1000, 'a'])).toBe(1);
      await changesNothing(bench, async () => expect(await bench.locks(['keep', MINE, LEASE, 'a'])).toBe(1), kind);
    }
  },

  'what is kept can be removed by force, by what stands there': async ({ redis, locks, listens }) => {
    const heard = await listens('me');
    const kept = `${MINE} kept`;
    await locks(['try', MINE, LEASE, 'a'], ['keep', MINE, LEASE, 'a']);
    expect(await locks(['force', createHash('sha1').update(kept).digest('hex'), 0, 'a'])).toBe(1);
    await locks(['try 1 read', MINE, LEASE, 'a'], ['keep', MINE, LEASE, 'a']);
    expect(await locks(['force', kept, 0, 'a'])).toBe(1);
    expect(await redis.exists(A)).toBe(0);
    expect(await heard()).toEqual([`lost ${kept} exclusive`, `lost ${kept} exclusive`]);
  },

  'the lock of a reader that writes is kept as that of a reader, and lets in those who wait to read': async ({
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

  'a reader that writes keeps others out, and keeps the longer of its leases': async ({ redis, locks }) => {
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

  'an upgrade is refused when others share the key, or not to read; and to who does not have all keys': async ({
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

  'of upgrades and downgrades only those count that are not older than the last': async (bench) => {
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

  'an upgrade that arrives after its own end does nothing, also when it is the first': async ({ locks }) => {
    await locks(['try 1 read', MINE, LEASE, 'a']);
    expect(await locks(['downgrade 1 1', MINE, LEASE, 'a'])).toBe(1);
    expect(await locks(['upgrade 1 1', MINE, LEASE, 'a'])).toBe(0);
    expect(await locks(['upgrade 1 2', MINE, LEASE, 'a'])).toBeGreaterThan(0);
  },

  'a permit is no writer that could become a reader': async (bench) => {
    const heard = await bench.listens('next');
    await bench.locks(['try 1 permits:2', MINE, LEASE, 'a']);
    await bench.queue(`${NEXT} ${LEASE} read`);
    await changesNothing(bench, () => bench.locks(['downgrade 1 1', MINE, LEASE, 'a']), 'downgrade');
    expect(await heard()).toEqual([]);
  },

  'which upgrades are over is known of each who reads, until it has ended, and no longer than the key': async ({
    redis,
    locks,
  }) => {
    await locks(['try 1 read', MINE, LEASE, 'a'], ['try 1 read', THEIRS, LEASE, 'a']);
    expect(await locks(['upgrade 1 1', MINE, LEASE, 'a'])).toBe(0);
    expect(await locks(['upgrade 1 7', THEIRS, LEASE, 'a'])).toBe(0);
    await locks(['try 1 read', NEXT, LEASE, 'a']);
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 7 ${THEIRS} 1 ${MINE}`);
    await locks(['release', MINE, 0, 'a']);
    expect(await locks(['upgrade 1 2', NEXT, LEASE, 'a'])).toBe(0);
    expect(await redis.get(A)).toBe(`nest-redis-lock:read 2 ${NEXT} 7 ${THEIRS}`);
    await locks(['release', NEXT, 0, 'a']);
    expect(await locks(['upgrade 1 7', THEIRS, LEASE, 'a'])).toBe(0);
    expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual([THEIRS]);
    expect(await locks(['upgrade 1 8', THEIRS, LEASE, 'a'])).toBeGreaterThan(0);
    await locks(['release', THEIRS, 0, 'a']);
    expect(await redis.exists(A, HOLDERS)).toBe(0);
  },

  'an error about one key spares the others of its operation, and of its call': async ({ redis, locks }) => {
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

  'out of memory, what is given back in the same call as somebody asks is free all the same': async ({
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

  'an error that is about the server is that of the whole call': async ({ locks, locksBy, without }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await expect(
      locksBy(await without('-zadd'), ['try 1 read', MINE, LEASE, 'b'], ['release', MINE, 0, 'a']),
    ).rejects.toThrow(/can't run this command|no permissions/);
  },
};
