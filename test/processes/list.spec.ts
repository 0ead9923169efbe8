import { hostname } from 'node:os';
import { describe, expect, it } from '@jest/globals';
import { until } from '../support/deferred.js';
import { Stage } from '../support/processes/stage.js';

const LEASE_MS = 30_000;

describe('list()', () => {
  const stage = Stage.forEach();

  it('list() shows all processes; of a stalled one what others wait for, and that it did not answer', async () => {
    const { here } = stage;
    await stage.listening();
    const held = await stage.holder('account:1', { lease: LEASE_MS, label: 'nightly interest' });
    await stage.holder('account:2', { lease: LEASE_MS, mode: 'read', shares: 2 });
    await stage.waiter('account:1', 1, { lease: LEASE_MS, label: 'payout' });
    const waiter = { label: 'payout', callers: 1, mode: 'exclusive', host: hostname() };
    const holder = { host: hostname(), pid: held.child.process.pid };
    const complete = async () => (await here.list()).unreached.length === 0;

    await until(complete);
    const { locks } = await here.list({ match: 'account:*' });
    expect(locks).toMatchObject([
      {
        key: 'account:1',
        holders: [{ ...holder, label: 'nightly interest', fence: held.fence, since: new Date(held.acquiredAt) }],
        waiters: [waiter],
        waiterCount: 1,
      },
      { key: 'account:2', mode: 'read', holderCount: 2, waiters: [] },
    ]);

    await held.child.stop();
    const without = await here.list();
    expect(without.unreached).toMatchObject([
      { what: 'process', name: `${hostname()}:${held.child.process.pid}`, ...holder, reason: 'silent' },
    ]);
    expect(without.locks.find(({ key }) => key === 'account:1')).toMatchObject({
      holders: [{ ...holder, since: undefined, heldMs: undefined, fence: undefined }],
      waiters: [waiter],
    });
    held.child.goOn();
    await until(complete);

    // Its lease goes on in Redis, and the waiter leads there.
    await held.child.kill();
    await until(async () =>
      (await here.list()).locks.some(({ key, holders }) => key === 'account:1' && holders[0]?.fence === undefined),
    );
    const dead = (await here.list()).locks.find(({ key }) => key === 'account:1')!;
    expect(dead).toMatchObject({ holders: [holder], waiters: [waiter] });
    expect(dead.holders[0]!.remaining).toBeGreaterThan(0);
    await here.forceUnlock('account:1');
    await until(async () => (await here.list({ match: '*:1' })).locks[0]?.holders[0]?.label === 'payout');
  }, 60_000);

  it('list() shows also what a dead process shared with a live one, while somebody waits for it', async () => {
    const { here } = stage;
    await stage.listening();
    const permits = { lease: LEASE_MS, permits: 3 };
    const alive = await here.lock('pool', permits);
    const { child } = await stage.holder('pool', permits);
    const kept = await here.lock('pool', { ...permits, atLeast: LEASE_MS });
    await kept.unlock();
    await stage.waiter('pool', 1, permits);
    await child.kill();
    await until(async () => (await here.list()).locks[0]?.holders.some(({ fence }) => fence === undefined) ?? false);
    const { locks } = await here.list();
    expect(locks).toMatchObject([{ key: 'pool', mode: 'permit', permits: 3, holderCount: 3, waiterCount: 1 }]);
    expect(locks[0]!.holders.map(({ pid, fence, isKept }) => [pid, fence, isKept])).toEqual(
      expect.arrayContaining([
        [process.pid, alive.fence, false],
        [child.process.pid, undefined, false],
        [process.pid, undefined, true],
      ]),
    );
  }, 60_000);
});
