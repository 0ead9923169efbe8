import { createHash } from 'node:crypto';
import { expect } from '@jest/globals';
import type { Redis } from 'ioredis';
import { HOLDERS_OF } from '../../../lib/redis/lua/holders-of.script.js';
import { INSPECT } from '../../../lib/redis/lua/inspect.script.js';
import { LOCKS, locksInCluster } from '../../../lib/redis/lua/locks.script.js';
import { PUBLISH } from '../../../lib/redis/lua/publish.script.js';
import { RENEW, RENEW_IN_CLUSTER } from '../../../lib/redis/lua/renew.script.js';
import { MAX_PASSED } from '../../../lib/redis/lua/constants.js';
import {
  ALIVE_MS,
  HAND_OFF_FENCES,
  fenceCountFor,
  FIRST_LEASE_MS,
  LOCAL_WAITERS_MARK,
} from '../../../lib/store/lock-store.js';
import { A, ALIVE, B, HOLDERS, LEASE, names, QUEUE, type ScriptBench } from './script-bench.js';

const NOTE = names.fence;

/** The second key of a script in a cluster: it never exists. */
const ABSENT = '{lock:}:none:fence';

export const CLUSTER_LOCKS = locksInCluster(names.wakeChannel(''));

/** Far in the future of the server's clock, in µs. */
const AHEAD = 5e15;

const [MINE, THEIRS, NEXT, LAST] = ['me.1', 'they.1', 'next.1', 'last.1'];
const waiter = (token: string, kind = 'exclusive') => `${token} ${LEASE} ${kind}`;

/** Answers how often a command was called since the statistics were reset. */
async function callsIn(redis: Redis): Promise<(command: string) => number> {
  const stats = await redis.info('commandstats');
  return (command) =>
    Number(new RegExp(`^cmdstat_${command.replace('|', '\\|')}:calls=(\\d+)`, 'm').exec(stats)?.[1] ?? 0);
}

const sha1 = (text: string) => createHash('sha1').update(text).digest('hex');

async function outOfMemory(redis: Redis, work: () => Promise<void>): Promise<void> {
  await redis.config('SET', 'maxmemory', 1);
  await work().finally(() => redis.config('SET', 'maxmemory', 0));
}

/** So many of one process that nobody hears wait for `a` before all others. Without `alive`, they have not asked for long. */
const crowd = (redis: Redis, count: number, alive: boolean) =>
  redis.eval(
    `for n = 1, ARGV[1] do
      redis.call('ZADD', KEYS[1], n / 10000, 'crowd.' .. n .. ' ${LEASE} exclusive')
      redis.call('ZADD', KEYS[2], ARGV[2], 'crowd.' .. n)
    end`,
    2, QUEUE, ALIVE, count, Date.now() + (alive ? ALIVE_MS : -1),
  ); // prettier-ignore

/** What the lines of the scripts are there for, as far as the random programs of test/store/programs.spec.ts don't notice when they are wrong. */
export const SCRIPT_CASES: Readonly<Record<string, (bench: ScriptBench) => Promise<void>>> = {
  'the note of the last fence is raised to a number, and never lowered': async ({ redis, locks }) => {
    await locks(['raise', '', 7]);
    expect(await redis.get(NOTE)).toBe('7');
    await locks(['raise', '', 5]);
    expect(await redis.get(NOTE)).toBe('7');
  },

  'the note of the last fence is brought up to the time of the server, or to a number that is larger': async ({
    redis,
    locks,
  }) => {
    const [seconds] = await redis.time();
    await locks(['clock', '', 1]);
    expect(Number(await redis.get(NOTE))).toBeGreaterThanOrEqual(Number(seconds) * 1e6);
    expect(await locks(['clock', '', AHEAD], ['try', MINE, LEASE, 'a'])).toBe(AHEAD + 1);
  },

  'the note of the last fence lasts until the time is a day past it, so that no fence goes back': async ({
    redis,
    locks,
  }) => {
    const day = 86_400_000;
    const note = async () => (await redis.pttl(NOTE)) / day;
    await locks(['clock', '', 0]);
    expect(await note()).toBeCloseTo(1, 2);
    for (const [verb, days] of [
      ['raise', 2],
      ['clock', 3],
    ] as const) {
      // prettier-ignore
      await locks([verb, '', (Date.now() + days * day) * 1000]);
      expect(await note()).toBeCloseTo(days + 1, 2);
    }
    await redis.set(NOTE, 5);
    await locks(['try', MINE, LEASE, 'a']);
    await outOfMemory(
      redis,
      async () => void (await locks(['clock', '', (Date.now() + 4 * day) * 1000], ['release', MINE, 0, 'a'])),
    );
    expect(await note()).toBeCloseTo(5, 2);
  },

  'out of memory, what is given back is free all the same, and then the note is brought up': async ({
    redis,
    locks,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await redis.set(NOTE, 5);
    await outOfMemory(redis, async () => {
      expect(await locks(['clock', '', AHEAD], ['release', MINE, 0, 'a'])).toBe(1);
      expect(await redis.exists(A)).toBe(0);
      expect(await redis.get(NOTE)).toBe(String(AHEAD));
      for (const verb of ['release', 'try'])
        await expect(locks(['clock', '', AHEAD + 10], [verb, MINE, LEASE, 'a'])).rejects.toThrow(/OOM/);
      expect(await redis.get(NOTE)).toBe(String(AHEAD));
    });
  },

  'out of memory, what is given back goes to who waits, of whatever kind': async ({ redis, locks, queue, listens }) => {
    const heard = await listens('next');
    for (const kind of ['exclusive', 'read', 'permits:2']) {
      for (const verb of ['release', 'cancel', 'downgrade 1 0', 'force', 'keep']) {
        const goesOn = /downgrade|keep/.test(verb);
        if (goesOn && kind !== 'read') continue;
        await redis.flushall();
        await locks([`try 1 ${verb === 'keep' ? kind : 'exclusive'}`, MINE, LEASE, 'a']);
        if (verb === 'keep') await locks(['upgrade 1 1', MINE, LEASE, 'a']);
        await queue(waiter(NEXT, kind));
        await redis.set(NOTE, 5);
        await outOfMemory(redis, async () => {
          const token = verb === 'force' ? sha1(MINE) : MINE;
          expect(await locks(['clock', '', AHEAD], [verb, token, LEASE, 'a'])).toBe(1);
        });
        const holders = kind === 'exclusive' ? [await redis.get(A)] : await redis.zrange(HOLDERS, '0', '-1');
        expect({ kind, verb, holders }).toEqual({ kind, verb, holders: expect.arrayContaining([NEXT]) });
        expect(await heard()).toEqual([expect.stringMatching(new RegExp(`^granted next\\.1 .* ${AHEAD + 1} 0 `))]);
      }
    }
  },

  'out of memory, who gets a lock in the same call as another is given back has a fence that is brought up': async ({
    redis,
    locks,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await redis.set(NOTE, 5);
    await outOfMemory(redis, async () => {
      expect(await locks(['clock', '', AHEAD], ['release', MINE, 0, 'a'], ['try', THEIRS, LEASE, 'a'])).toEqual([
        1,
        AHEAD + 1,
      ]);
      expect(await redis.get(NOTE)).toBe(String(AHEAD + fenceCountFor(THEIRS)));
    });
  },

  'fences begin at the time of the server, in µs, where there is no note': async ({ redis, locks }) => {
    const [seconds] = await redis.time();
    expect(await locks(['try', MINE, LEASE, 'a'])).toBeGreaterThan(Number(seconds) * 1e6);
    await redis.del(NOTE);
    expect(await locks(['try 2', MINE, LEASE, 'a', 'b'])).toBeGreaterThan(Number(seconds) * 1e6);
    expect(await redis.pttl(NOTE)).toBeGreaterThan(0);
  },

  'fences count on from the note, also when it is ahead of the clock; below zero, others wait': async ({
    redis,
    locks,
    queue,
  }) => {
    await redis.set(NOTE, AHEAD);
    expect(await locks(['try', MINE, LEASE, 'a'], ['try', MINE, LEASE, 'b'])).toEqual([
      AHEAD + 1,
      AHEAD + 1 + fenceCountFor(MINE),
    ]);
    expect(await redis.mget(A, B)).toEqual([MINE, MINE]);
    await redis.del(A);
    await queue(waiter(NEXT));
    expect(await locks(['try', MINE, LEASE, 'a'])).toBeLessThan(-(AHEAD + 2 * fenceCountFor(MINE)));
  },

  'what somebody else has written into the note is as good as gone, once it is brought up': async ({
    redis,
    locks,
  }) => {
    const [seconds] = await redis.time();
    for (const foreign of ['abc', '1.5', '-5', '0x10', '', '9007199254740992', '9223372036854775807']) {
      await redis.set(NOTE, foreign);
      const fence = Number(await locks(['clock', '', 0], ['try', MINE, LEASE, 'a']));
      expect(fence).toBeGreaterThan(Number(seconds) * 1e6);
      expect(fence).toBeLessThan(Number(seconds) * 1e6 + 3600e6);
      await redis.del(NOTE);
      await redis.rpush(NOTE, 'a');
      expect(await locks(['clock', '', 0], ['release', MINE, 0, 'a'])).toBe(1);
    }
    await redis.set(NOTE, -50);
    expect(await locks(['try', MINE, LEASE, 'a'])).toBeGreaterThan(Number(seconds) * 1e6);
  },

  'each grant comes with fences of its own': async ({ redis, locks }) => {
    const used = async (what: string, token: string) => {
      const before = Number(await redis.get(NOTE));
      await locks([what, token, LEASE, 'a']);
      await redis.del(A);
      return Number(await redis.get(NOTE)) - before;
    };
    await redis.set(NOTE, 1);
    expect(await used('try', MINE)).toBe(fenceCountFor(MINE));
    expect(await used('queue', MINE)).toBe(fenceCountFor(MINE));
    expect(await used('poll', MINE)).toBe(fenceCountFor(MINE));
    expect(await used('poll', MINE + LOCAL_WAITERS_MARK)).toBe(fenceCountFor(LOCAL_WAITERS_MARK));
    expect(await used('handoff', MINE + LOCAL_WAITERS_MARK)).toBe(fenceCountFor(LOCAL_WAITERS_MARK));
    await redis.set(A, MINE);
    expect(await used('reserve', MINE)).toBe(HAND_OFF_FENCES);
  },

  'a release needs no note': async ({ redis, locks }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await redis.del(NOTE);
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.keys('*')).toEqual([]);
  },

  "a free key is the first waiter's, also when another is asked for in the same call": async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const heard = await listens('next');
    await queue(waiter(NEXT));
    const replies = (await locks(['try', MINE, LEASE, 'a'], ['try', MINE, LEASE, 'b'])) as unknown[];
    expect(replies[0]).toEqual([NEXT, FIRST_LEASE_MS, 0, expect.any(Number)]);
    expect(replies[1]).toEqual(expect.any(Number));
    expect(await redis.get(A)).toBe(NEXT);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
  },

  'a key whose sharers have all run out is free': async ({ redis, locks, share }) => {
    await share('read', { [THEIRS]: -1 });
    expect(await locks(['release', MINE, 0, 'a'])).toBe(0);
    expect(await redis.exists(A)).toBe(0);
    await share('read', { [THEIRS]: -1 });
    expect(await locks(['try', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.get(A)).toBe(MINE);
  },

  'who was not told is not given a key': async ({ redis, locks, locksBy, queue, listens, without }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await listens('next');
    await queue(waiter(NEXT));
    expect(await locksBy(await without('-publish'), ['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.exists(A)).toBe(0);
    expect(await redis.zcard(QUEUE)).toBe(1);
  },

  'of a crowd whose process is gone, one is asked for, and no fence is spent': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    const heard = await listens('next');
    await queue(...Array.from({ length: 150 }, (_, index) => waiter(`gone.${index}`)), waiter('deaf.1'), waiter(NEXT));
    await redis.config('RESETSTAT');
    const before = Number(await redis.get(NOTE));
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
    expect(Number(await redis.get(NOTE)) - before).toBe(fenceCountFor(NEXT));
    const calls = await callsIn(redis);
    expect(calls('pubsub|numsub') + calls('pubsub')).toBe(3);
    expect(calls('zrange')).toBe(4);
    expect(await redis.zcard(QUEUE)).toBe(151);
  },

  'of a silent process, one that is deaf has its turn all the same': async ({ redis, locks, queue }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter('gone.1'), waiter('gone.2'), waiter('gone.3'));
    await redis.zadd(ALIVE, Date.now() + ALIVE_MS + 0.5, 'gone.3');
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.get(A)).toBe('gone.3');
    expect(await redis.pttl(A)).toBeLessThanOrEqual(2000);
    expect(await redis.zrange(QUEUE, '0', '-1')).toEqual([waiter('gone.1'), waiter('gone.2')]);
  },

  'of a crowd that may share a key a hundred are let in at once, and then one is called who lets in the next': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const heard = await listens('next');
    await locks(['try', MINE, LEASE, 'a']);
    await queue(...Array.from({ length: 250 }, (_, index) => waiter(`next.${index}`, 'read')));
    const release = await locks(
      ['release', MINE, 0, 'a'],
      ['release', MINE, 0, 'a'],
      ['queue 1 read', 'next.250', LEASE, 'a'],
    );
    expect(release).toEqual([1, 0, [expect.any(String), expect.any(Number), 150, expect.any(Number)]]);
    const told = await heard();
    expect(told.map((text) => text.split(' ', 2).join(' '))).toEqual([
      ...Array.from({ length: 100 }, (_, index) => `granted next.${index}`),
      'called next.200',
    ]);
    expect(await redis.zcard(HOLDERS)).toBe(100);
    expect(await locks(['queue 1 read', 'next.200', LEASE, 'a'])).toBeLessThan(0);
    expect((await heard()).at(-1)).toBe('called next.250');
    expect(await redis.zcard(HOLDERS)).toBe(201);
    expect(await locks(['queue 1 read', 'next.250', LEASE, 'a'])).toBeGreaterThan(0);
    expect((await heard()).filter((text) => text.startsWith('called'))).toEqual([]);
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  'a crowd at one key keeps nobody from another key of the same call': async ({ redis, locks, queue, listens }) => {
    await listens('next');
    await locks(['try', MINE, LEASE, 'a'], ['try', MINE, LEASE, 'b']);
    await queue(...Array.from({ length: 150 }, (_, index) => waiter(`next.${index}`, 'read')));
    expect(await locks(['queue', 'next.x', LEASE, 'b'])).toEqual([MINE, expect.any(Number), 0, expect.any(Number)]);
    const [first, second, third] = (await locks(
      ['release', MINE, 0, 'a'],
      ['release', MINE, 0, 'b'],
      ['try', THEIRS, LEASE, 'b'],
    )) as unknown[];
    expect([first, second, (third as unknown[])[0]]).toEqual([1, 1, 'next.x']);
    expect(await redis.get(B)).toBe('next.x');
  },

  'out of memory, what is to stay for some time stays for that time': async ({ redis, locks }) => {
    await locks(['try', MINE, 1000, 'a'], ['try', MINE, LEASE, 'b']);
    await outOfMemory(redis, async () =>
      expect(await locks(['keep', MINE, LEASE, 'a'], ['keep', MINE, 1000, 'b'])).toEqual([1, 1]),
    );
    expect(await redis.pttl(A)).toBeGreaterThan(2000);
    expect(await redis.pttl(B)).toBeLessThanOrEqual(1000);
    expect(await redis.get(A)).toBe(`${MINE} kept`);
  },

  'what is no waiter is taken out of a queue, and harms nobody': async ({ redis, locks, run, queue, listens }) => {
    const foreign = [
      'foo',
      '',
      ' ',
      'foo 0 exclusive',
      'foo 99999999999999 exclusive',
      'foo 1 other',
      'foo 1 permits:x',
      'a b 1 read',
      'foo x read',
    ];
    await locks(['try', MINE, LEASE, 'a']);
    const heard = await listens('next');
    await queue(...foreign, waiter(NEXT));
    await redis.zrem(ALIVE, 'foo');
    expect(((await run(INSPECT, names.ofKey('a'), [])) as unknown[])[3]).toEqual([waiter(NEXT)]);
    await redis.zadd(ALIVE, Date.now() + ALIVE_MS, 'foo');
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  'who waits for the shortest lease and for the longest is a waiter, too': async ({ redis, locks, queue, listens }) => {
    const heard = await listens('next');
    for (const lease of ['1', '9999999999999']) {
      await locks(['try', MINE, LEASE, 'a']);
      await queue(`${NEXT} ${lease} exclusive`);
      await locks(['release', MINE, 0, 'a']);
      expect(await heard()).toEqual([expect.stringMatching(new RegExp(`^granted next\\.1 ${lease} `))]);
      await redis.del(A);
    }
  },

  'who has not asked for long loses its place': async ({ redis, locks, queue, listens }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await listens('next');
    await queue(waiter('dead.1'), waiter('dead.2'), waiter(NEXT));
    await redis.zadd(ALIVE, Date.now() - 1000, 'dead.1', Date.now() - 1000, 'dead.2');
    await locks(['release', MINE, 0, 'a']);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
  },

  'whoever lets nobody in calls nobody': async ({ locks, share, queue, listens }) => {
    const heard = await listens('last');
    await share('read', { [THEIRS]: LEASE });
    await queue(waiter(NEXT, 'read'), waiter(LAST, 'read'));
    expect(await locks(['queue 1 read', NEXT, LEASE, 'a'])).toBeLessThan(0);
    expect(await heard()).toEqual([]);
  },

  "who is handed a key hears its whole name, and who waits hears of a holder no more than a token's length": async ({
    redis,
    run,
    listens,
    locks,
  }) => {
    const heard = await listens('next');
    const [key, queueOf] = [names.lock('a\0b'), names.queue('a\0b')];
    await redis
      .multi()
      .set(key, MINE)
      .zadd(queueOf, 1, waiter(NEXT))
      .zadd(queueOf.replace('queue', 'alive'), Date.now() + ALIVE_MS, NEXT)
      .exec();
    expect(await run(LOCKS, [NOTE, key, queueOf], ['release', MINE, 0])).toBe(1);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 [^]* lock:a\0b$/)]);
    await redis.set(A, 'x'.repeat(1_000_000));
    for (const what of ['try', 'queue'])
      expect(((await locks([what, MINE, LEASE, 'a'])) as string[])[0]).toHaveLength(256);
    const [value] = (await run(INSPECT, names.ofKey('a'), [])) as string[];
    expect(value).toHaveLength(256);
  },

  "a writer that can't hear of its turn does not keep readers out": async ({ locks, share, queue }) => {
    await share('read', { [THEIRS]: LEASE });
    await queue(waiter(NEXT));
    expect(await locks(['try 1 read', MINE, LEASE, 'a'])).toEqual(expect.any(Number));
  },

  'when a writer gives up, the readers behind it are in': async ({ redis, locks, share, queue, listens }) => {
    const [, heard] = [await listens('next'), await listens('last')];
    await share('read', { [THEIRS]: LEASE });
    await queue(waiter(NEXT), waiter(LAST, 'read'));
    expect(await locks(['cancel', NEXT, LEASE, 'a'])).toBe(0);
    expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual(expect.arrayContaining([THEIRS, LAST]));
    expect(await heard()).toEqual([expect.stringMatching(/^granted last\.1 /)]);
  },

  'one key that is no lock does not spoil the others of a call': async ({ redis, locks }) => {
    await redis.hset(A, 'no', 'lock');
    for (const what of ['try', 'poll', 'queue']) {
      const replies = (await locks([what, MINE, LEASE, 'a'], [what, MINE, LEASE, 'b'])) as unknown[];
      expect(String(replies[0])).toContain('WRONGTYPE');
      expect(replies[1]).toEqual(expect.any(Number));
      expect(await redis.exists(QUEUE)).toBe(0);
      await redis.del(names.lock('b'));
    }
  },

  'a holder hears that somebody will be back': async ({ locks, listens }) => {
    const heard = await listens('they');
    await locks(['try', THEIRS, LEASE, 'a']);
    await locks(['try', MINE, LEASE, 'a']);
    expect(await heard()).toEqual([]);
    await locks(['poll', MINE, LEASE, 'a']);
    expect(await heard()).toEqual([`wanted ${THEIRS}`]);
  },

  'nobody queues for permits that others were given another number of': async ({ redis, locks, share, queue }) => {
    await share('permits:3', { [THEIRS]: LEASE });
    expect(await locks(['queue 1 permits:2', MINE, LEASE, 'a'])).toEqual(['permits:3']);
    expect(await redis.exists(QUEUE)).toBe(0);
    await queue(waiter(MINE, 'permits:2'));
    expect(await locks(['queue 1 permits:2', MINE, LEASE, 'a'])).toEqual(['permits:3']);
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  'who reserves fences has its lock renewed': async ({ redis, locks }) => {
    await locks(['try', MINE, 1000, 'a']);
    expect(await locks(['reserve', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
  },

  'who asks again for less has its lock for no shorter': async ({ redis, locks }) => {
    await locks(['try', MINE, LEASE, 'a']);
    expect(await locks(['try', MINE, 1000, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
  },

  'who asks again for its part of a key has it renewed': async ({ redis, locks, share }) => {
    await share('read', { [MINE]: 1000 });
    await redis.pexpire(A, 1000);
    expect(await locks(['try 1 read', MINE, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(1000);
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeGreaterThan(Date.now() + 1000);
  },

  'a writer that becomes a reader lets in the readers that come next, and once': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await listens('next');
    await queue(waiter(NEXT, 'read'));
    expect(await locks(['downgrade', MINE, LEASE, 'a'])).toBe(1);
    expect((await redis.zrange(HOLDERS, '0', '-1')).sort()).toEqual([MINE, NEXT].sort());
    await redis.zadd(HOLDERS, Date.now() + 1000, MINE);
    expect(await locks(['downgrade', MINE, LEASE, 'a'])).toBe(1);
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeLessThanOrEqual(Date.now() + 1000);
  },

  'a waiter is handed a key for a short time, until it shows that it goes on': async ({
    redis,
    locks,
    queue,
    listens,
    share,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await listens('next');
    await queue(waiter(NEXT));
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(FIRST_LEASE_MS);
    expect(await locks(['queue', NEXT, LEASE, 'a'])).toBeGreaterThan(0);
    expect(await redis.pttl(A)).toBeGreaterThan(FIRST_LEASE_MS);
    await redis.del(A);
    await share('read', { [MINE]: LEASE });
    await queue(waiter(NEXT, 'read'));
    await locks(['try 1 read', 'last.1', LEASE, 'a']);
    expect(Number(await redis.zscore(HOLDERS, NEXT))).toBeLessThanOrEqual(Date.now() + FIRST_LEASE_MS);
  },

  'who waits for one of several keys keeps those before it for a short time, and all of them for the lease when it has them':
    async ({ redis, locks, share }) => {
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

  'what is kept ends after the time that it was given': async ({ redis, locks, share }) => {
    await locks(['try', MINE, LEASE, 'a']);
    expect(await locks(['keep', MINE, 1000, 'a'])).toBe(1);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(1000);
    expect((await redis.keys('*')).sort()).toEqual([A, NOTE].sort());
    await redis.del(A);
    await share('read', { [MINE]: LEASE });
    expect(await locks(['keep 1 read', MINE, 1000, 'a'])).toBe(1);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(1000);
    expect(await redis.pttl(HOLDERS)).toBeLessThanOrEqual(1000);
  },

  'only the holder that was seen is removed by force, and told who and why': async ({ redis, run, locks, listens }) => {
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

  "a part that can't be asked about is not taken for lost": async ({ run, share, without }) => {
    await share('read', { [MINE]: LEASE });
    await expect(run(RENEW, [A], [MINE, LEASE], await without('-zscore'))).rejects.toThrow(
      /can't run this command|no permissions to run the 'zscore' command/,
    );
    expect(await run(RENEW, [A], [MINE, LEASE])).toEqual([[], []]);
  },

  "a key that can't be renewed costs no other its renewal": async ({ redis, run, share, locks, without }) => {
    await share('read', { [MINE]: 1000 });
    await locks(['try', MINE, 1000, 'b']);
    expect(
      await run(RENEW, [A, B, 'lock:c'], [MINE, LEASE, MINE, LEASE, MINE, LEASE], await without('-zscore')),
    ).toEqual([[3], [1]]);
    expect(await redis.pttl(B)).toBeGreaterThan(1000);
  },

  'who shares a key is renewed also out of memory, and while others share it for longer': async ({
    redis,
    run,
    share,
  }) => {
    await share('read', { [MINE]: 1000, [THEIRS]: LEASE, [LAST]: -1 });
    await outOfMemory(redis, async () => expect(await run(RENEW, [A], [MINE, 2000])).toEqual([[], []]));
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeGreaterThan(Date.now() + 1000);
    expect(Number(await redis.zscore(HOLDERS, THEIRS))).toBeGreaterThan(Date.now() + 2000);
  },

  'in a cluster, who shares a key is renewed where the name of that is given, and not known else': async ({
    redis,
    run,
    share,
    locks,
  }) => {
    await share('read', { [MINE]: 1000 });
    await locks(['try', MINE, 1000, 'b']);
    await expect(run(RENEW_IN_CLUSTER, [A], [MINE, LEASE])).rejects.toThrow(/^TRYAGAIN/);
    expect(await run(RENEW_IN_CLUSTER, [A, B], [MINE, LEASE, MINE, LEASE])).toEqual([[], [1]]);
    expect(await redis.pttl(B)).toBeGreaterThan(1000);
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeLessThan(Date.now() + 2000);
    expect(await run(RENEW_IN_CLUSTER, [A, B, HOLDERS, '{lock:b}:holders'], [MINE, LEASE, MINE, LEASE])).toEqual([
      [],
      [],
    ]);
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeGreaterThan(Date.now() + 2000);
  },

  'only who holds and who waits is seen': async ({ redis, run, share, queue }) => {
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

  'a process is told something on its channel': async ({ run, listens }) => {
    const heard = await listens('next');
    expect(await run(PUBLISH, [], [names.wakeChannel('next'), 'something'])).toBe(1);
    expect(await heard()).toEqual(['something']);
  },

  'where very many in a queue are gone, one call drops some of them, and tells the last one to go on': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const [heardNext, heard] = [await listens('next'), await listens('last')];
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter(NEXT), waiter('more.1'), waiter(LAST));
    await redis.zadd(QUEUE, 0.00001, 'nonsense');
    await crowd(redis, 2 * MAX_PASSED + 10, false);
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.zcard(QUEUE)).toBe(MAX_PASSED + 11 + 3);
    expect(await heard()).toEqual([`called ${LAST}`]);
    for (const [what, left] of [
      ['queue', 11],
      ['try', 11],
    ] as const) {
      expect(await locks([what, LAST, LEASE, 'a'])).toEqual(['', 0, expect.any(Number), expect.any(Number)]);
      expect(await redis.zcard(QUEUE)).toBe(left + 3);
      if (what === 'queue') await crowd(redis, MAX_PASSED, false);
    }
    expect(await heard()).toEqual([]);
    expect(await locks(['queue', LAST, LEASE, 'a'])).toEqual([NEXT, expect.any(Number), 1, expect.any(Number)]);
    expect(await heardNext()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
    expect(await redis.zcard(ALIVE)).toBe(2);
  },

  'where nobody in a queue is alive, and there are very many, it is dropped': async ({ redis, locks }) => {
    for (const verb of ['release', 'queue']) {
      await redis.set(A, MINE);
      await crowd(redis, 2 * MAX_PASSED, false);
      if (verb === 'queue') await redis.del(A);
      expect(await locks([verb, MINE, LEASE, 'a'])).toEqual(expect.any(Number));
      expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
      await redis.del(A);
    }
    await crowd(redis, 2 * MAX_PASSED, false);
    await redis.del(ALIVE);
    expect(await locks(['queue', MINE, LEASE, 'a'])).toEqual(expect.any(Number));
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  "of very many that can't be told, the first keep their places": async ({ redis, locks, queue, listens }) => {
    const heard = await listens('next');
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter(NEXT), waiter(LAST));
    await crowd(redis, 2 * MAX_PASSED + 10, true);
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.zcard(QUEUE)).toBe(MAX_PASSED + 10 + 2);
    expect(await redis.exists(A)).toBe(0);
    expect(await locks(['try', THEIRS, LEASE, 'a'])).toEqual([NEXT, expect.any(Number), MAX_PASSED + 1, 0]);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
  },

  'in a cluster, a waiter has a key for a moment only, as nobody knows whether it heard': async ({
    redis,
    locks,
    run,
    queue,
    listens,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter(NEXT));
    const heard = await listens('next');
    expect(await run(CLUSTER_LOCKS, [NOTE, ABSENT, ...names.ofKey('a')], ['release', MINE, 0])).toBe(1);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(2000);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
  },

  'what a token has can be told to end sooner, and only that': async ({ redis, locks, share }) => {
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

  'in a cluster, waiters lose their places that have been silent since nobody asked for a key that was handed over':
    async ({ redis, locks, run, queue, listens }) => {
      await locks(['try', MINE, LEASE, 'a']);
      await listens('next');
      await queue(waiter('dead.1'), waiter('dead.2'), waiter(NEXT));
      for (const token of ['dead.1', 'dead.2']) await redis.zadd(ALIVE, Date.now() + 2000, token);
      await redis.zadd(ALIVE, Date.now() - 2500, '?');
      expect(await run(CLUSTER_LOCKS, [NOTE, ABSENT, ...names.ofKey('a')], ['release', MINE, 0])).toBe(1);
      expect(await redis.get(A)).toBe(NEXT);
      expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
    },

  'in a cluster, it is noted since when a key may be with somebody who has not heard of it, until that one asks':
    async ({ redis, locks, run, queue }) => {
      const clusterLocks = (...args: (string | number)[]) =>
        run(CLUSTER_LOCKS, [NOTE, ABSENT, ...names.ofKey('a')], args);
      await locks(['try', MINE, LEASE, 'a']);
      await queue(waiter(NEXT), waiter(LAST));
      expect(await clusterLocks('release', MINE, 0)).toBe(1);
      expect(Number(await redis.zscore(ALIVE, '?'))).toBeGreaterThan(Date.now() - 1000);
      expect(await redis.pttl(ALIVE)).toBeGreaterThan(0);
      expect(Number(await clusterLocks('queue', NEXT, LEASE))).toBeLessThan(0);
      expect(await redis.zscore(ALIVE, '?')).toBeNull();
      // Of late: nobody is taken for silent by it.
      await redis.zadd(ALIVE, Date.now() - 1000, '?', Date.now() + 3000, LAST);
      expect(await clusterLocks('release', NEXT, 0)).toBe(1);
      expect(await redis.get(A)).toBe(LAST);
    },

  'in a cluster, that is noted anew only of one who has not asked in time': async ({ redis, locks, run, queue }) => {
    const release = (token: string) => run(CLUSTER_LOCKS, [NOTE, ABSENT, ...names.ofKey('a')], ['release', token, 0]);
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter(NEXT), waiter(LAST), waiter('more.1'));
    const before = Date.now() - 1000;
    await redis.zadd(ALIVE, before, '?');
    expect(await release(MINE)).toBe(1);
    expect(Number(await redis.zscore(ALIVE, '?'))).toBe(before);
    await redis.zadd(ALIVE, Date.now() - 2500, '?');
    expect(await release(NEXT)).toBe(1);
    expect(await redis.get(A)).toBe(LAST);
    expect(Number(await redis.zscore(ALIVE, '?'))).toBeGreaterThan(before);
  },

  "in a cluster, who can't have been told is not given a key": async ({ redis, locks, run, queue, without }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter('foreign'), waiter(NEXT));
    expect(
      await run(CLUSTER_LOCKS, [NOTE, ABSENT, ...names.ofKey('a')], ['release', MINE, 0], await without('-publish')),
    ).toBe(1);
    expect(await redis.exists(A)).toBe(0);
    expect(await redis.zcard(QUEUE)).toBe(2);
  },
};
