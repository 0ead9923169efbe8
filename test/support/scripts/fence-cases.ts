import { expect } from '@jest/globals';
import { HAND_OFF_FENCES, fenceCountFor, LOCAL_WAITERS_MARK } from '../../../lib/store/lock-store.js';
import { A, B, LEASE } from './script-bench.js';
import {
  COUNTER,
  AHEAD,
  MINE,
  mayNot,
  THEIRS,
  NEXT,
  waiter,
  outOfMemory,
  type ScriptCases,
} from './script-fixtures.js';

/** Fences and their counter. */
export const FENCE_CASES: ScriptCases = {
  'raise the fence counter to a number, and never lower it': async ({ redis, locks }) => {
    await locks(['raise', '', 7]);
    expect(await redis.get(COUNTER)).toBe('7');
    await locks(['raise', '', 5]);
    expect(await redis.get(COUNTER)).toBe('7');
    await locks(['raise', '', AHEAD]);
    await locks(['clock', '', 0]);
    expect(await redis.get(COUNTER)).toBe(String(AHEAD));
    expect(await locks(['clock', '', 0], ['try', MINE, LEASE, 'a'])).toBe(AHEAD + 1);
  },

  'never lower the fence counter for a user that may not read it': async ({ redis, locksBy, without }) => {
    await redis.set(COUNTER, AHEAD);
    const limited = await without('-get');
    await expect(locksBy(limited, ['clock', '', 0])).rejects.toThrow(mayNot('get'));
    expect(await redis.get(COUNTER)).toBe(String(AHEAD));
  },

  'advance the fence counter to the time of the server, or to a larger number': async ({ redis, locks }) => {
    const [seconds] = await redis.time();
    await locks(['clock', '', 1]);
    expect(Number(await redis.get(COUNTER))).toBeGreaterThanOrEqual(Number(seconds) * 1e6);
    expect(await locks(['clock', '', AHEAD], ['try', MINE, LEASE, 'a'])).toBe(AHEAD + 1);
  },

  'keep the fence counter until the time is a day past it, so that no fence goes back': async ({ redis, locks }) => {
    const day = 86_400_000;
    const daysLeft = async () => (await redis.pttl(COUNTER)) / day;
    await locks(['clock', '', 0]);
    expect(await daysLeft()).toBeCloseTo(1, 2);
    for (const [verb, days] of [
      ['raise', 2],
      ['clock', 3],
    ] as const) {
      // prettier-ignore
      await locks([verb, '', (Date.now() + days * day) * 1000]);
      expect(await daysLeft()).toBeCloseTo(days + 1, 2);
    }
    await redis.set(COUNTER, 5);
    await locks(['try', MINE, LEASE, 'a']);
    await outOfMemory(
      redis,
      async () => void (await locks(['clock', '', (Date.now() + 4 * day) * 1000], ['release', MINE, 0, 'a'])),
    );
    expect(await daysLeft()).toBeCloseTo(5, 2);
  },

  'release a lock when the server is out of memory, and then advance the fence counter': async ({ redis, locks }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await redis.set(COUNTER, 5);
    await outOfMemory(redis, async () => {
      expect(await locks(['clock', '', AHEAD], ['release', MINE, 0, 'a'])).toBe(1);
      expect(await redis.exists(A)).toBe(0);
      expect(await redis.get(COUNTER)).toBe(String(AHEAD));
      for (const verb of ['release', 'try'])
        await expect(locks(['clock', '', AHEAD + 10], [verb, MINE, LEASE, 'a'])).rejects.toThrow(/OOM/);
      expect(await redis.get(COUNTER)).toBe(String(AHEAD));
    });
  },

  'grant a fence of the advanced counter when the server is out of memory and the same call releases another lock':
    async ({ redis, locks }) => {
      await locks(['try', MINE, LEASE, 'a']);
      await redis.set(COUNTER, 5);
      await outOfMemory(redis, async () => {
        expect(await locks(['clock', '', AHEAD], ['release', MINE, 0, 'a'], ['try', THEIRS, LEASE, 'a'])).toEqual([
          1,
          AHEAD + 1,
        ]);
        expect(await redis.get(COUNTER)).toBe(String(AHEAD + fenceCountFor(THEIRS)));
      });
    },

  'begin fences at the time of the server in µs, if there is no counter': async ({ redis, locks }) => {
    const [seconds] = await redis.time();
    expect(await locks(['try', MINE, LEASE, 'a'])).toBeGreaterThan(Number(seconds) * 1e6);
    await redis.del(COUNTER);
    expect(await locks(['try 2', MINE, LEASE, 'a', 'b'])).toBeGreaterThan(Number(seconds) * 1e6);
    expect(await redis.pttl(COUNTER)).toBeGreaterThan(0);
    await redis.flushall();
    const [first, second] = (await locks(['try', MINE, LEASE, 'a'], ['try', MINE, LEASE, 'b'])) as [number, number];
    expect(first).toBeGreaterThan(Number(seconds) * 1e6);
    expect(second).toBe(first + fenceCountFor(MINE));
    expect(Number(await redis.get(COUNTER))).toBe(second + fenceCountFor(MINE) - 1);
    expect(await redis.pttl(COUNTER)).toBeGreaterThan(0);
  },

  'count fences on from the counter, also when it is ahead of the clock, and return them below zero when others wait':
    async ({ redis, locks, queue }) => {
      await redis.set(COUNTER, AHEAD);
      expect(await locks(['try', MINE, LEASE, 'a'], ['try', MINE, LEASE, 'b'])).toEqual([
        AHEAD + 1,
        AHEAD + 1 + fenceCountFor(MINE),
      ]);
      expect(await redis.mget(A, B)).toEqual([MINE, MINE]);
      await redis.del(A);
      await queue(waiter(NEXT));
      expect(await locks(['try', MINE, LEASE, 'a'])).toBeLessThan(-(AHEAD + 2 * fenceCountFor(MINE)));
    },

  'treat a counter that somebody else has overwritten as missing, when it is advanced': async ({ redis, locks }) => {
    const [seconds] = await redis.time();
    for (const foreign of ['abc', '1.5', '-5', '0x10', '', '9007199254740992', '9223372036854775807']) {
      await redis.set(COUNTER, foreign);
      const fence = Number(await locks(['clock', '', 0], ['try', MINE, LEASE, 'a']));
      expect(fence).toBeGreaterThan(Number(seconds) * 1e6);
      expect(fence).toBeLessThan(Number(seconds) * 1e6 + 3600e6);
      await redis.del(COUNTER);
      await redis.rpush(COUNTER, 'a');
      expect(await locks(['clock', '', 0], ['release', MINE, 0, 'a'])).toBe(1);
    }
    await redis.set(COUNTER, -50);
    expect(await locks(['try', MINE, LEASE, 'a'])).toBeGreaterThan(Number(seconds) * 1e6);
  },

  'give each grant fences of its own': async ({ redis, locks }) => {
    const used = async (what: string, token: string) => {
      const before = Number(await redis.get(COUNTER));
      await locks([what, token, LEASE, 'a']);
      await redis.del(A);
      return Number(await redis.get(COUNTER)) - before;
    };
    const usedBesideARelease = async (what: string, token: string) => {
      const before = Number(await redis.get(COUNTER));
      await redis.set(B, THEIRS);
      await locks(['release', THEIRS, 0, 'b'], [what, token, LEASE, 'a']);
      await redis.del(A);
      return Number(await redis.get(COUNTER)) - before;
    };
    await redis.set(COUNTER, 1);
    expect(await used('try', MINE)).toBe(fenceCountFor(MINE));
    expect(await used('queue', MINE)).toBe(fenceCountFor(MINE));
    expect(await used('poll', MINE)).toBe(fenceCountFor(MINE));
    expect(await used('poll', MINE + LOCAL_WAITERS_MARK)).toBe(fenceCountFor(LOCAL_WAITERS_MARK));
    expect(await used('handoff', MINE + LOCAL_WAITERS_MARK)).toBe(fenceCountFor(LOCAL_WAITERS_MARK));
    for (const what of ['try', 'queue', 'poll']) expect(await usedBesideARelease(what, MINE)).toBe(fenceCountFor(MINE));
    for (const what of ['poll', 'handoff'])
      expect(await usedBesideARelease(what, MINE + LOCAL_WAITERS_MARK)).toBe(fenceCountFor(LOCAL_WAITERS_MARK));
    await redis.set(A, MINE);
    expect(await used('reserve', MINE)).toBe(HAND_OFF_FENCES);
  },

  'release a lock without a fence counter': async ({ redis, locks }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await redis.del(COUNTER);
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.keys('*')).toEqual([]);
  },
};
