import { expect } from '@jest/globals';
import { ALIVE_MS, fenceCountFor, FIRST_LEASE_MS } from '../../../lib/store/lock-store.js';
import { A, ALIVE, B, HOLDERS, LEASE, QUEUE } from './script-bench.js';
import {
  COUNTER,
  AHEAD,
  MINE,
  THEIRS,
  NEXT,
  LAST,
  waiter,
  callsIn,
  sha1,
  outOfMemory,
  type ScriptCases,
} from './script-fixtures.js';

/** How a key goes to its waiters. */
export const HAND_OFF_CASES: ScriptCases = {
  'hand a released lock to its waiter of any kind when the server is out of memory': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const heard = await listens('next');
    for (const kind of ['exclusive', 'read', 'permits:2']) {
      for (const verb of ['release', 'cancel', 'downgrade 1 0', 'force', 'keep']) {
        const goesOn = /downgrade|keep/.test(verb);
        if (goesOn && kind !== 'read') continue;
        await redis.flushall();
        await locks([`try 1 ${verb === 'keep' ? kind : 'exclusive'}`, MINE, LEASE, 'a']);
        if (verb === 'keep') await locks(['upgrade 1 1', MINE, LEASE, 'a']);
        await queue(waiter(NEXT, kind));
        await redis.set(COUNTER, 5);
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

  'let the first waiter ask when a lock is kept, so that it hears until when': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const heard = await listens('next');
    for (const kind of ['exclusive', 'read', 'permits:1']) {
      await redis.flushall();
      await locks([`try 1 ${kind}`, MINE, LEASE, 'a']);
      await queue(waiter(NEXT), waiter(LAST));
      expect(await locks(['keep', MINE, 1000, 'a'])).toBe(1);
      expect([kind, await heard()]).toEqual([kind, [`offered ${NEXT}`]]);
      expect(await redis.zcard(QUEUE)).toBe(2);
    }
  },

  'reply to each operation of a call, also when the last one asks for a key that is held': async ({ redis, locks }) => {
    const held = [MINE, expect.any(Number), 0, expect.any(Number)];
    for (const verb of ['queue', 'handoff', 'unsubscribed', 'try', 'poll']) {
      await redis.flushall();
      const both = await locks([verb, MINE, LEASE, 'a'], [verb, THEIRS, LEASE, 'a']);
      expect([verb, both]).toEqual([verb, [expect.any(Number), held]]);
      await locks(['try', THEIRS, LEASE, 'b']);
      const moved = await locks(['release', THEIRS, LEASE, 'b'], [verb, NEXT, LEASE, 'a']);
      expect([verb, moved]).toEqual([verb, [1, [MINE, expect.any(Number), expect.any(Number), expect.any(Number)]]]);
    }
  },

  'give a free key to its first waiter, also when another key is asked for in the same call': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    const heard = await listens('next');
    await queue(waiter(NEXT));
    const replies = (await locks(['try', MINE, LEASE, 'a'], ['try', MINE, LEASE, 'b'])) as unknown[];
    const [holder, leaseLeftMs, ahead] = replies[0] as unknown[];
    expect([holder, ahead]).toEqual([NEXT, 0]);
    expect(leaseLeftMs).toBeLessThanOrEqual(FIRST_LEASE_MS);
    expect(leaseLeftMs).toBeGreaterThan(FIRST_LEASE_MS - 1000);
    expect(replies[1]).toEqual(expect.any(Number));
    expect(await redis.get(A)).toBe(NEXT);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
  },

  'grant no key to a waiter that could not be notified': async ({ redis, locks, locksBy, queue, listens, without }) => {
    await listens('next');
    const limited = await without('-publish');
    const arrive = () => redis.zadd(QUEUE, Date.now() * 1000, waiter(NEXT));
    for (const wait of [() => queue(waiter(NEXT)), arrive]) {
      await redis.flushall();
      await locks(['try', MINE, LEASE, 'a']);
      await wait();
      expect(await locksBy(limited, ['release', MINE, 0, 'a'])).toBe(1);
      expect(await redis.exists(A)).toBe(0);
      expect(await redis.zcard(QUEUE)).toBe(1);
    }
  },

  'take back all of a grant that nobody was told of': async ({
    redis,
    locks,
    locksBy,
    queue,
    share,
    listens,
    without,
  }) => {
    await listens('next');
    const limited = await without('-publish');
    for (const kind of ['exclusive', 'read', 'permits:2']) {
      await redis.flushall();
      await locks(['try', MINE, LEASE, 'a']);
      // As somebody leaves it who deletes a key by hand.
      await redis.zadd(HOLDERS, Date.now() + LEASE, LAST);
      await queue(waiter(NEXT, kind));
      expect([kind, await locksBy(limited, ['release', MINE, 0, 'a'])]).toEqual([kind, 1]);
      expect([kind, await redis.exists(A)]).toEqual([kind, 0]);
    }
    await redis.flushall();
    await share('read', { [MINE]: LEASE, [THEIRS]: LEASE });
    await queue(waiter(NEXT, 'read'));
    expect(await locksBy(limited, ['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.exists(A)).toBe(1);
    expect(await redis.zrange(HOLDERS, '0', '-1')).toEqual([THEIRS]);
  },

  'ask for the subscription of a process that is gone once for all its waiters, and spend no fence on them': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    const heard = await listens('next');
    await queue(...Array.from({ length: 90 }, (_, index) => waiter(`gone.${index}`)), waiter('deaf.1'), waiter(NEXT));
    await redis.config('RESETSTAT');
    const before = Number(await redis.get(COUNTER));
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
    expect(Number(await redis.get(COUNTER)) - before).toBe(fenceCountFor(NEXT));
    const calls = await callsIn(redis);
    // One more where the contended path looks first.
    expect(calls('pubsub|numsub') + calls('pubsub')).toBeLessThanOrEqual(4);
    expect(calls('zrange')).toBeLessThanOrEqual(4);
    expect(await redis.zcard(QUEUE)).toBe(91);
  },

  'grant a key to a waiter without a subscription, though other waiters of its process are passed over': async ({
    redis,
    locks,
    queue,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter('gone.1'), waiter('gone.2'), waiter('gone.3'));
    await redis.zadd(ALIVE, Date.now() + ALIVE_MS + 0.5, 'gone.3');
    expect(await locks(['release', MINE, 0, 'a'])).toBe(1);
    expect(await redis.get(A)).toBe('gone.3');
    expect(await redis.pttl(A)).toBeLessThanOrEqual(2000);
    expect(await redis.zrange(QUEUE, '0', '-1')).toEqual([waiter('gone.1'), waiter('gone.2')]);
  },

  'let in a hundred waiters that may share a key, then offer it to one that lets in the next hundred': async ({
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
      'offered next.200',
    ]);
    expect(await redis.zcard(HOLDERS)).toBe(100);
    expect(await locks(['queue 1 read', 'next.200', LEASE, 'a'])).toBeLessThan(0);
    expect((await heard()).at(-1)).toBe('offered next.250');
    expect(await redis.zcard(HOLDERS)).toBe(201);
    expect(await locks(['queue 1 read', 'next.250', LEASE, 'a'])).toBeGreaterThan(0);
    expect((await heard()).filter((text) => text.startsWith('offered'))).toEqual([]);
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  'let in a crowd at one key without holding up another key of the same call': async ({
    redis,
    locks,
    queue,
    listens,
  }) => {
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

  'offer a key to nobody when nobody was let in': async ({ locks, share, queue, listens }) => {
    const heard = await listens('last');
    await share('read', { [THEIRS]: LEASE });
    await queue(waiter(NEXT, 'read'), waiter(LAST, 'read'));
    expect(await locks(['queue 1 read', NEXT, LEASE, 'a'])).toBeLessThan(0);
    expect(await heard()).toEqual([]);
  },

  'grant a key to a waiter for a short time, until it shows that it is alive': async ({
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
};
