import { describe, expect, it } from '@jest/globals';
import type { Lock } from 'nest-redis-lock';
import { judge } from '../support/checker/verdict.js';
import { clock, longestWaitMs, lost, type Plan } from '../support/processes/contenders.js';
import { mostAtOnce } from '../support/processes/crowds.js';
import { until } from '../support/deferred.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { Stage } from '../support/processes/stage.js';

const KEY = 'printers';
const PERMITS = 10;
const LEASE_MS = 1000;

/** What a lost message, or a holder that crashed, may cost in addition. */
const CHECK_MS = 1500;

const permit = { permits: PERMITS, lease: LEASE_MS } as const;

describe('A semaphore of 10, used by several processes', () => {
  const stage = Stage.forEach();

  const takeAll = (): Promise<Lock[]> =>
    Promise.all(Array.from({ length: PERMITS }, () => stage.here.lock(KEY, permit)));

  const unlockAll = (locks: readonly Lock[]) => Promise.all(locks.map((lock) => lock.unlock()));

  it(
    'a semaphore lets in 10 of 200 tasks at once, never more, and all tasks but those of killed processes end',
    async () => {
      const { here, journals } = stage;
      const processes = sized(2, 4);
      const plan = { callers: 160 / processes, sections: sized(8, 150), holdMs: [5, 40], options: permit } as const;
      // These go in and stay there, until they are killed.
      const staying = { ...plan, callers: 20, holdMs: 600_000 };
      const started = await stage.contenders(KEY, ...Array<Plan>(processes).fill(plan), staying, staying);
      const survivors = started.slice(0, processes);
      const victims = started.slice(processes);
      const rounds = sized(2, 30);
      for (let round = 1; round <= rounds; round++) {
        const next = round + 2 <= rounds ? stage.contenders(KEY, staying) : [];
        await journals.when(() => victims.reduce((inside, { file }) => inside + journals.inside(file), 0) >= PERMITS);
        await victims.shift()!.kill();
        victims.push(...(await next));
      }
      await Promise.all(survivors.map((survivor) => survivor.report()));

      const all = journals.sections();
      figures('A semaphore of 10, 160 callers, processes killed', 'never more than 10 inside', {
        sections: all.length,
        'at once': mostAtOnce(all),
        lost: lost(all).length,
        'longest wait ms': longestWaitMs(all),
        'took s': (all.at(-1)!.endedAt - all[0]!.beganAt) / 1000,
      });
      expect(mostAtOnce(all)).toBe(PERMITS);
      expect(judge(all).examples()).toBe('');
      for (const { file } of survivors) expect(journals.inside(file)).toBe(0);
      const inTheEnd = await takeAll();
      expect(await here.tryLock(KEY, permit)).toBeNull();
      await unlockAll(inTheEnd);
    },
    LONG ? 300_000 : 30_000,
  );

  it(
    'the permits of a killed process come back when its leases end: all of them, and not before',
    async () => {
      const { here } = stage;
      const back: number[] = [];
      for (let round = 0; round < sized(2, 30); round++) {
        const shares = round % 2 === 0 ? PERMITS : 1 + Math.floor(Math.random() * PERMITS);
        const { child } = await stage.holder(KEY, { ...permit, shares });
        const others = await Promise.all(Array.from({ length: PERMITS - shares }, () => here.lock(KEY, permit)));
        const entered: { lock: Lock; at: number }[] = [];
        const waiting = Array.from({ length: shares }, async () => {
          const lock = await here.lock(KEY, permit);
          entered.push({ lock, at: clock() });
        });
        await stage.queued(KEY, shares);
        await child.kill();
        const killedAt = clock();
        const theirs = (await here.inspect(KEY))!.holders.filter(({ pid }) => pid === child.process.pid);
        const firstEndsAt = killedAt + Math.min(...theirs.map(({ remaining }) => remaining));
        expect(theirs).toHaveLength(shares);
        // Somebody asks all the time, so nothing that is free too soon lies there unseen.
        await until(async () => (await here.tryLock(KEY, permit)) !== null || entered.length === shares);
        await Promise.all(waiting);
        const at = entered.map(({ at }) => at);
        back.push(Math.max(...at) - killedAt);
        expect(Math.min(...at)).toBeGreaterThan(firstEndsAt - 1); // the clock of Redis counts whole ms
        expect(await here.tryLock(KEY, permit)).toBeNull();
        await unlockAll([...others, ...entered.map(({ lock }) => lock)]);
      }
      figures('A process with permits is killed', 'its permits are free when their leases end', {
        rounds: back.length,
        'all back after ms: p50': percentile(back, 0.5),
        most: Math.max(...back),
      });
      expect(Math.max(...back)).toBeLessThan(LEASE_MS + CHECK_MS);
    },
    LONG ? 300_000 : 30_000,
  );
});
