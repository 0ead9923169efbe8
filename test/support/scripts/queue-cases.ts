import { expect } from '@jest/globals';
import { MAX_DROPPED, MAX_PASSED } from '../../../lib/redis/lua/constants.js';
import { INSPECT } from '../../../lib/redis/lua/inspect.script.js';
import { LOCKS } from '../../../lib/redis/lua/locks.script.js';
import { ALIVE_MS } from '../../../lib/store/lock-store.js';
import { A, ALIVE, HOLDERS, LEASE, names, QUEUE } from './script-bench.js';
import { COUNTER, MINE, THEIRS, NEXT, LAST, waiter, callsIn, crowd, type ScriptCases } from './script-fixtures.js';

/** Waiters and queues. */
export const QUEUE_CASES: ScriptCases = {
  'remove from a queue what is no waiter': async ({ redis, locks, run, queue, listens }) => {
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

  'accept waiters with the shortest and with the longest lease': async ({ redis, locks, queue, listens }) => {
    const heard = await listens('next');
    for (const lease of ['1', '9999999999999']) {
      await locks(['try', MINE, LEASE, 'a']);
      await queue(`${NEXT} ${lease} exclusive`);
      await locks(['release', MINE, 0, 'a']);
      expect(await heard()).toEqual([expect.stringMatching(new RegExp(`^granted next\\.1 ${lease} `))]);
      await redis.del(A);
    }
  },

  'drop waiters that have not asked for too long': async ({ redis, locks, queue, listens }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await listens('next');
    await queue(waiter('dead.1'), waiter('dead.2'), waiter(NEXT));
    await redis.zadd(ALIVE, Date.now() - 1000, 'dead.1', Date.now() - 1000, 'dead.2');
    await locks(['release', MINE, 0, 'a']);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
  },

  'count a waiter that has not asked again as alive for some seconds after it arrived': async ({
    redis,
    locks,
    run,
    listens,
  }) => {
    const heard = await listens('next');
    const arrived = (ms: number) => (Date.now() + ms) * 1000;
    await locks(['try', MINE, LEASE, 'a']);
    await redis.zadd(QUEUE, arrived(-ALIVE_MS - 1000), waiter('dead.1'), arrived(1000 - ALIVE_MS), waiter(NEXT));
    expect(((await run(INSPECT, names.ofKey('a'), [])) as unknown[])[3]).toEqual([waiter(NEXT)]);
    await locks(['release', MINE, 0, 'a']);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
    expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
  },

  'note until when a waiter counts as alive only when it asks again': async ({ redis, locks }) => {
    await locks(['try', MINE, LEASE, 'a']);
    const ask = ['queue', NEXT, LEASE, 'a'] as const;
    for (const others of [[], [['queue', LAST, LEASE, 'a']]] as const) {
      await locks(ask, ...others);
      expect(await redis.exists(ALIVE)).toBe(0);
      await locks(ask, ...others);
      for (const [, token] of [ask, ...others]) {
        expect(Number(await redis.zscore(ALIVE, token))).toBeGreaterThan(Date.now() + ALIVE_MS - 1000);
      }
      expect(await redis.pttl(ALIVE)).toBeGreaterThan(2 * ALIVE_MS - 1000);
      await locks(['cancel', NEXT, LEASE, 'a'], ['cancel', LAST, LEASE, 'a']);
      expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
    }
    await locks(['unsubscribed', NEXT, LEASE, 'a']);
    expect(Number(await redis.zscore(ALIVE, NEXT)) % 1).toBe(0.5);
  },

  'tell a waiter the whole name of its key, and of a holder no more than the length of a token': async ({
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
    expect(await run(LOCKS, [COUNTER, key, queueOf], ['release', MINE, 0])).toBe(1);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 [^]* lock:a\0b$/)]);
    await redis.set(A, 'x'.repeat(1_000_000));
    for (const what of ['try', 'queue'])
      expect(((await locks([what, MINE, LEASE, 'a'])) as string[])[0]).toHaveLength(256);
    const [value] = (await run(INSPECT, names.ofKey('a'), [])) as string[];
    expect(value).toHaveLength(256);
  },

  'drop a limited number of waiters that are gone, then offer the key to the last one': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const [heardNext, heard] = [await listens('next'), await listens('last')];
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter(NEXT), waiter('more.1'), waiter(LAST));
    await redis.zadd(QUEUE, 0.00001, 'nonsense');
    await crowd(redis, 2 * MAX_DROPPED + 10, false);
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.zcard(QUEUE)).toBe(MAX_DROPPED + 11 + 3);
    expect(await heard()).toEqual([`offered ${LAST}`]);
    for (const [what, left] of [
      ['queue', 11],
      ['try', 11],
    ] as const) {
      expect(await locks([what, LAST, LEASE, 'a'])).toEqual(['', 0, expect.any(Number), expect.any(Number)]);
      expect(await redis.zcard(QUEUE)).toBe(left + 3);
      if (what === 'queue') await crowd(redis, MAX_DROPPED, false);
    }
    expect(await heard()).toEqual([]);
    expect(await locks(['queue', LAST, LEASE, 'a'])).toEqual([NEXT, expect.any(Number), 1, expect.any(Number)]);
    expect(await heardNext()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
    expect(await redis.zcard(ALIVE)).toBe(2);
  },

  'offer the key to the last waiter behind very many that are gone, if it has just arrived': async ({
    redis,
    locks,
    listens,
  }) => {
    const heard = await listens('last');
    for (const [ms, messages] of [
      [0, [`offered ${LAST}`]],
      [-ALIVE_MS - 1000, []],
    ] as const) {
      await locks(['try', MINE, LEASE, 'a']);
      await crowd(redis, 2 * MAX_DROPPED, false);
      await redis.del(ALIVE);
      await redis.zadd(QUEUE, (Date.now() + ms) * 1000, waiter(LAST));
      expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
      expect(await heard()).toEqual(messages);
      expect(await redis.exists(QUEUE)).toBe(messages.length);
      await redis.del(QUEUE);
    }
  },

  'delete a long queue in which nobody is alive': async ({ redis, locks }) => {
    for (const verb of ['release', 'queue']) {
      await redis.set(A, MINE);
      await crowd(redis, 2 * MAX_DROPPED, false);
      if (verb === 'queue') await redis.del(A);
      expect(await locks([verb, MINE, LEASE, 'a'])).toEqual(expect.any(Number));
      expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
      await redis.del(A);
    }
    await crowd(redis, 2 * MAX_DROPPED, false);
    await redis.del(ALIVE);
    expect(await locks(['queue', MINE, LEASE, 'a'])).toEqual(expect.any(Number));
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  "keep the places of the first waiters, when very many can't be notified": async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const heard = await listens('next');
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter(NEXT), waiter(LAST));
    await crowd(redis, MAX_PASSED + MAX_DROPPED + 10, true);
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.zcard(QUEUE)).toBe(MAX_PASSED + 10 + 2);
    expect(await redis.exists(A)).toBe(0);
    expect(await locks(['try', THEIRS, LEASE, 'a'])).toEqual([NEXT, expect.any(Number), MAX_PASSED + 1, 0]);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
  },

  "walk past waiters that can't be notified once in a call, and not at all when nobody could have the key": async ({
    redis,
    locks,
    share,
  }) => {
    for (const [held, asks] of [
      ['permits:1', 'queue 1 permits:1'],
      ['read', 'queue 1 read'],
      ['read', 'queue 1 exclusive'],
    ] as const) {
      await redis.flushall();
      await share(held, { [THEIRS]: LEASE });
      await crowd(redis, 1000, true);
      await redis.config('RESETSTAT');
      const askers = Array.from({ length: 128 }, (_, index) => `asker.${index}`);
      const replies = (await locks(...askers.map((token) => [asks, token, LEASE, 'a'] as const))) as unknown[];
      expect(replies.filter((reply) => typeof reply === 'number')).toHaveLength(asks.endsWith('read') ? 128 : 0);
      const calls = await callsIn(redis);
      expect(calls('zscore')).toBeLessThan(held === 'read' ? 2000 : 500);
      expect(calls('zrange')).toBeLessThan(600);
    }
  },

  "know in a call who has left the waiters that can't be notified, and who can be reached again": async ({
    redis,
    locks,
    share,
    queue,
    listens,
  }) => {
    const read = (token: string) => waiter(token, 'read');
    const heard = await listens('next');
    // Ends before every lease that comes later.
    await share('read', { [THEIRS]: LEASE / 2 });
    const permit = 'permits:3';
    await queue(waiter('gone.1'), read('gone.2'), waiter('gone.3', permit), waiter(NEXT));
    const ask = (what: string, token: string, kind = 'read') => [`${what} 1 ${kind}`, token, LEASE, 'a'] as const;
    expect(
      await locks(
        ask('queue', LAST), // passes over three, and finds the live writer
        ask('queue', 'gone.2'), // is one of them: only others that are gone are before it
        ask('cancel', 'gone.1', 'exclusive'),
        ask('queue', 'more.1'), // still finds the live writer
        ask('unsubscribed', 'gone.3', permit), // is to have its turn from now on
        ask('cancel', NEXT, 'exclusive'),
        ask('queue', 'more.2'),
      ),
    ).toEqual([
      [THEIRS, expect.any(Number), 4, expect.any(Number)],
      expect.any(Number),
      0,
      [THEIRS, expect.any(Number), 3, expect.any(Number)],
      [expect.any(String), expect.any(Number), 0, expect.any(Number)],
      0,
      [THEIRS, expect.any(Number), 3, expect.any(Number)],
    ]);
    expect(await heard()).toEqual([]);
    expect((await redis.zrange(HOLDERS, '0', '-1')).sort()).toEqual([THEIRS, 'gone.2'].sort());
  },

  "find in a call who joins before waiters that can't be notified": async ({ redis, locks, share, listens }) => {
    await listens('next');
    await share('read', { [THEIRS]: LEASE });
    await redis.zadd(QUEUE, 9e15, waiter('gone.1'));
    await redis.zadd(ALIVE, Date.now() + ALIVE_MS, 'gone.1');
    await locks(['queue', NEXT, LEASE, 'a'], ['release', THEIRS, 0, 'a']);
    expect(await redis.get(A)).toBe(NEXT);
  },
};
