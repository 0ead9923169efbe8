import { expect } from '@jest/globals';
import { RENEW, RENEW_IN_CLUSTER } from '../../../lib/redis/lua/renew.script.js';
import { A, B, HOLDERS, LEASE } from './script-bench.js';
import { MINE, mayNot, THEIRS, LAST, outOfMemory, type ScriptCases } from './script-fixtures.js';

/** Renewals. */
export const RENEWAL_CASES: ScriptCases = {
  "fail a renewal, and don't report a loss, when the holders of a key can't be read": async ({
    run,
    share,
    without,
  }) => {
    await share('read', { [MINE]: LEASE });
    await expect(run(RENEW, [A], [MINE, LEASE], await without('-zscore'))).rejects.toThrow(mayNot('zscore'));
    expect(await run(RENEW, [A], [MINE, LEASE])).toEqual([[], []]);
  },

  "renew the other keys when one can't be renewed": async ({ redis, run, share, locks, without }) => {
    await share('read', { [MINE]: 1000 });
    await locks(['try', MINE, 1000, 'b']);
    expect(
      await run(RENEW, [A, B, 'lock:c'], [MINE, LEASE, MINE, LEASE, MINE, LEASE], await without('-zscore')),
    ).toEqual([[3], [1]]);
    expect(await redis.pttl(B)).toBeGreaterThan(1000);
  },

  'renew a share of a key when the server is out of memory, and while other shares last longer': async ({
    redis,
    run,
    share,
  }) => {
    await share('read', { [MINE]: 1000, [THEIRS]: LEASE, [LAST]: -1 });
    await outOfMemory(redis, async () => expect(await run(RENEW, [A], [MINE, 2000])).toEqual([[], []]));
    expect(Number(await redis.zscore(HOLDERS, MINE))).toBeGreaterThan(Date.now() + 1000);
    expect(Number(await redis.zscore(HOLDERS, THEIRS))).toBeGreaterThan(Date.now() + 2000);
  },

  'renew a writer only while it is one, by the upgrade that it names or by a later one': async ({
    redis,
    run,
    share,
  }) => {
    const left = async () => Number(await redis.zscore(HOLDERS, MINE)) - Date.now();
    for (const sharing of ['read', 'write:2', 'read 3 other:1:x.1']) {
      await share(sharing, { [MINE]: 1000 });
      expect(await run(RENEW, [A], [`${MINE} 3`, LEASE])).toEqual([[1], []]);
      expect(await left()).toBeLessThanOrEqual(1000);
    }
    for (const sharing of ['write:3', 'write:10']) {
      await share(sharing, { [MINE]: 1000 });
      expect(await run(RENEW, [A], [`${MINE} 3`, LEASE])).toEqual([[], []]);
      expect(await left()).toBeGreaterThan(1000);
      expect(await run(RENEW, [A], [`${THEIRS} 3`, LEASE])).toEqual([[1], []]);
    }
  },

  'renew a share of a key in a cluster if the name of its holders is given, and report it as unknown otherwise':
    async ({ redis, run, share, locks }) => {
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
};
