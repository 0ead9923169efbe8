import { expect } from '@jest/globals';
import { A, ALIVE, LEASE, names, QUEUE } from './script-bench.js';
import { COUNTER, ABSENT, CLUSTER_LOCKS, MINE, NEXT, LAST, waiter, type ScriptCases } from './script-fixtures.js';

/** What differs in a cluster. */
export const CLUSTER_CASES: ScriptCases = {
  'raise the fence counter of a slot in a cluster by an operation without keys': async ({ redis, run }) => {
    expect(await run(CLUSTER_LOCKS, [COUNTER, ABSENT], ['raise', '', 7, 'cancel 0 exclusive', '', 0])).toBe(0);
    expect(await redis.get(COUNTER)).toBe('7');
  },

  'grant a key in a cluster for a moment only, because nobody knows whether the waiter heard': async ({
    redis,
    locks,
    run,
    queue,
    listens,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter(NEXT));
    const heard = await listens('next');
    expect(await run(CLUSTER_LOCKS, [COUNTER, ABSENT, ...names.ofKey('a')], ['release', MINE, 0])).toBe(1);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await redis.pttl(A)).toBeLessThanOrEqual(2000);
    expect(await heard()).toEqual([expect.stringMatching(/^granted next\.1 /)]);
  },

  'drop waiters in a cluster that have been silent since a grant that nobody confirmed': async ({
    redis,
    locks,
    run,
    queue,
    listens,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await listens('next');
    await queue(waiter('dead.1'), waiter('dead.2'), waiter(NEXT));
    for (const token of ['dead.1', 'dead.2']) await redis.zadd(ALIVE, Date.now() + 2000, token);
    await redis.zadd(ALIVE, Date.now() - 2500, '?');
    expect(await run(CLUSTER_LOCKS, [COUNTER, ABSENT, ...names.ofKey('a')], ['release', MINE, 0])).toBe(1);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await redis.exists(QUEUE, ALIVE)).toBe(0);
  },

  'note in a cluster until when a waiter counts as alive, as soon as it arrives': async ({ redis, locks, run }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await run(CLUSTER_LOCKS, [COUNTER, ABSENT, ...names.ofKey('a')], ['queue', NEXT, LEASE]);
    expect(Number(await redis.zscore(ALIVE, NEXT))).toBeGreaterThan(Date.now());
  },

  'drop waiters in a cluster that have not asked for too long': async ({ redis, locks, run, queue }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter('dead.1'), 'no waiter', waiter(NEXT));
    await redis.zadd(ALIVE, Date.now() - 1000, 'dead.1');
    expect(await run(CLUSTER_LOCKS, [COUNTER, ABSENT, ...names.ofKey('a')], ['release', MINE, 0])).toBe(1);
    expect(await redis.get(A)).toBe(NEXT);
    expect(await redis.exists(QUEUE)).toBe(0);
  },

  'note in a cluster since when a grant is unconfirmed, until its holder asks for the key': async ({
    redis,
    locks,
    run,
    queue,
  }) => {
    const clusterLocks = (...args: (string | number)[]) =>
      run(CLUSTER_LOCKS, [COUNTER, ABSENT, ...names.ofKey('a')], args);
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

  'renew that note in a cluster only for a holder that did not ask in time': async ({ redis, locks, run, queue }) => {
    const release = (token: string) =>
      run(CLUSTER_LOCKS, [COUNTER, ABSENT, ...names.ofKey('a')], ['release', token, 0]);
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

  "grant no key in a cluster to a waiter that can't have been notified": async ({
    redis,
    locks,
    run,
    queue,
    without,
  }) => {
    await locks(['try', MINE, LEASE, 'a']);
    await queue(waiter('foreign'), waiter(NEXT));
    expect(
      await run(CLUSTER_LOCKS, [COUNTER, ABSENT, ...names.ofKey('a')], ['release', MINE, 0], await without('-publish')),
    ).toBe(1);
    expect(await redis.exists(A)).toBe(0);
    expect(await redis.zcard(QUEUE)).toBe(2);
  },
};
