import { hostname } from 'node:os';
import { describe, expect, it } from '@jest/globals';
import { clock } from '../support/processes/contenders.js';
import { until } from '../support/deferred.js';
import { Stage } from '../support/processes/stage.js';

const KEY = 'account:1';
const LEASE_MS = 30_000;

/** How long nobody is to wait for a process that does not answer. */
const SOON_MS = 1000;

describe('inspect()', () => {
  const stage = Stage.forEach();

  it('inspect() shows a holder in another process, and the waiters in their order, with their labels', async () => {
    const { here } = stage;
    await stage.listening();
    const { child, fence, acquiredAt } = await stage.holder(KEY, { lease: LEASE_MS, label: 'nightly interest' });
    const waits = new AbortController();
    const waiting: Promise<unknown>[] = [];
    for (const [number, options] of [
      { label: 'first' },
      { label: 'zweite, für Ä' },
      { mode: 'read' },
      { permits: 3, label: 'third/4' },
    ].entries()) {
      waiting.push(
        here.lock(KEY, { fair: true, signal: waits.signal, ...options } as object).catch((error: unknown) => error),
      );
      await stage.queued(KEY, number + 1);
    }
    const info = await here.inspect(KEY);
    const host = hostname();
    expect(info).toMatchObject({ key: KEY, mode: 'exclusive', permits: undefined });
    expect(info!.holders).toEqual([info!.holder]);
    expect(info!.holder).toMatchObject({
      host,
      pid: child.process.pid,
      label: 'nightly interest',
      fence,
      since: new Date(acquiredAt),
    });
    expect(info!.holder.instance).toMatch(/^[\w-]{16}$/);
    expect(info!.holder.remaining).toBeGreaterThan(LEASE_MS / 2);
    expect(info!.holder.remaining).toBeLessThanOrEqual(LEASE_MS);
    expect(info!.waiters.map(({ label, mode }) => [label, mode])).toEqual([
      ['first', 'exclusive'],
      ['zweite, für Ä', 'exclusive'],
      [undefined, 'read'],
      ['third/4', 'permit'],
    ]);
    for (const waiter of info!.waiters) expect(waiter).toMatchObject({ host, pid: process.pid });
    waits.abort('enough');
    await Promise.all(waiting);
    expect((await here.inspect(KEY))!.waiters).toEqual([]);
  }, 30_000);

  it.each([
    ['readers', { mode: 'read' }, { mode: 'read', permits: undefined }],
    ['permits', { permits: 5 }, { mode: 'permit', permits: 5 }],
  ] as const)(
    'inspect() shows all %s, of all processes',
    async (_name, options, expected) => {
      const { here } = stage;
      await stage.listening();
      const holders = await Promise.all(
        ['north', 'south'].map((label) => stage.holder(KEY, { lease: LEASE_MS, shares: 2, label, ...options })),
      );
      const own = await here.lock(KEY, options);
      const info = await here.inspect(KEY);
      expect(info).toMatchObject(expected);
      const shown = info!.holders.map(({ pid, label, fence }) => ({ pid, label, fence }));
      const theirs = holders.flatMap(({ child, fences }, index) =>
        fences.map((fence) => ({ pid: child.process.pid, label: ['north', 'south'][index], fence })),
      );
      const byFence = (a: { fence: number | undefined }, b: { fence: number | undefined }) => a.fence! - b.fence!;
      expect(shown.sort(byFence)).toEqual(
        [...theirs, { pid: process.pid, label: undefined, fence: own.fence }].sort(byFence),
      );
    },
    30_000,
  );

  it('inspect() shows of a stalled holder what Redis knows, and does not wait for the rest', async () => {
    const { here } = stage;
    await stage.listening();
    const { child, fence } = await stage.holder(KEY, { lease: LEASE_MS, label: 'nightly interest' });
    child.process.kill('SIGSTOP');
    const askedAt = clock();
    const { holder } = (await here.inspect(KEY))!;
    expect(clock() - askedAt).toBeLessThan(SOON_MS);
    expect(holder).toMatchObject({ host: hostname(), pid: child.process.pid, since: undefined, fence: undefined });
    expect(holder.remaining).toBeGreaterThan(LEASE_MS / 2);
    child.process.kill('SIGCONT');
    await until(async () => (await here.inspect(KEY))!.holder.fence === fence);
  }, 30_000);

  it('inspect() shows nothing of a key that is free, also when its holder was killed', async () => {
    const { here } = stage;
    expect(await here.inspect(KEY)).toBeNull();
    const { child } = await stage.holder(KEY, { lease: 1000, mode: 'read', shares: 2 });
    expect((await here.inspect(KEY))!.holders).toHaveLength(2);
    await child.kill();
    await until(async () => (await here.inspect(KEY)) === null);
  }, 30_000);
});
