import { describe, expect, it } from '@jest/globals';
import { clock } from '../support/processes/contenders.js';
import { until } from '../support/deferred.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { Stage } from '../support/processes/stage.js';

const KEY = 'account:1';
const LEASE_MS = 30_000;

/** Far below lease/3, when a holder that is not told would notice; far above what a message takes. */
const AT_ONCE_MS = 1000;

interface Loss {
  readonly lost: number;
  readonly at: number;
}

describe('forceUnlock', () => {
  const stage = Stage.forEach();

  it(
    'a holder in another process hears of forceUnlock at once; the next waiter enters, with a larger fence',
    async () => {
      const { here } = stage;
      const heard: number[] = [];
      const passed: number[] = [];
      for (let round = 0; round < sized(3, 50); round++) {
        const { child, fence } = await stage.holder(KEY, { lease: LEASE_MS });
        const lost = child.message<Loss>();
        const next = here.lock(KEY);
        await stage.queued(KEY, 1);
        const forcedAt = clock();
        expect(await here.forceUnlock(KEY)).toBe(true);
        const lock = await next;
        passed.push(clock() - forcedAt);
        const { lost: theirs, at } = await lost;
        heard.push(at - forcedAt);
        expect(theirs).toBe(fence);
        expect(lock.fence).toBeGreaterThan(fence);
        child.send('stop');
        expect(await child.exit()).toBe(0);
        expect(lock.isHeld).toBe(true);
        await lock.unlock();
      }
      figures(
        'forceUnlock of a lock of another process',
        'its holder is notified, and the next caller enters, at once',
        {
          'heard after ms: p50': percentile(heard, 0.5),
          most: Math.max(...heard),
          'next in after ms: p50': percentile(passed, 0.5),
          'at most': Math.max(...passed),
        },
      );
      expect(Math.max(...heard, ...passed)).toBeLessThan(AT_ONCE_MS);
    },
    LONG ? 600_000 : 30_000,
  );

  it.each([
    ['readers', { mode: 'read' }],
    ['permits', { permits: 4 }],
  ] as const)(
    'forceUnlock takes the key from all %s, in all processes',
    async (_name, options) => {
      const { here } = stage;
      const holders = await Promise.all(
        [1, 2].map(() => stage.holder(KEY, { lease: LEASE_MS, shares: 2, ...options })),
      );
      const losses: number[] = [];
      for (const { child } of holders) child.process.on('message', (message) => losses.push((message as Loss).lost));
      const next = here.lock(KEY);
      await stage.queued(KEY, 1);
      expect(await here.forceUnlock(KEY)).toBe(true);
      const lock = await next;
      const fences = holders.flatMap((holder) => holder.fences);
      expect(lock.fence).toBeGreaterThan(Math.max(...fences));
      await until(() => losses.length === fences.length);
      expect(new Set(losses)).toEqual(new Set(fences));
      await lock.unlock();
    },
    30_000,
  );
});
