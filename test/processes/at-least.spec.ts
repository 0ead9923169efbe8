import { describe, expect, it } from '@jest/globals';
import type { Plan } from '../support/processes/contenders.js';
import { until } from '../support/deferred.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { Stage } from '../support/processes/stage.js';

const AT_LEAST_MS = 300;

describe('wait: 0 and atLeast, in three processes', () => {
  const stage = Stage.forEach();

  it(
    'a job that all processes start runs once in each atLeast, even though its work is done at once',
    async () => {
      const { journals, redis } = stage;
      const windows = sized(8, 200);
      const plan: Plan = { callers: 1, sections: 1e9, holdMs: 0, options: { wait: 0, atLeast: AT_LEAST_MS } };
      const processes = await stage.contenders('nightly-interest', plan, plan, plan);
      await journals.when(() => journals.sections().length > windows, LONG ? 120_000 : 20_000);
      for (const contender of processes) contender.stop();
      await Promise.all(processes.map((contender) => contender.report()));

      const runs = journals.sections();
      // It is kept from a moment on between the call and the run.
      const gaps = runs.slice(1).map(({ beganAt }, index) => beganAt - runs[index]!.askedAt);
      figures('A job with atLeast, wanted by several processes', 'one run in each window', {
        runs: runs.length,
        'from call to next run ms: least': Math.min(...gaps),
        most: Math.max(...gaps),
      });
      expect(Math.min(...gaps)).toBeGreaterThan(AT_LEAST_MS - 2); // the clock of Redis counts whole ms
      expect(Math.max(...gaps)).toBeLessThan(AT_LEAST_MS + 1000);
      expect(
        percentile(
          runs.map(({ beganAt, endedAt }) => endedAt - beganAt),
          0.5,
        ),
      ).toBeLessThan(AT_LEAST_MS / 3);
      await until(async () => (await redis.keys('*')).length === 1);
    },
    LONG ? 180_000 : 30_000,
  );

  it('a job whose process is killed is kept from the others for the rest of its lease', async () => {
    const { here } = stage;
    const { child } = await stage.holder('nightly-interest', { lease: 600, wait: 0, atLeast: AT_LEAST_MS });
    await child.kill();
    expect(await here.tryLock('nightly-interest')).toBeNull();
    await expect(here.withLock('nightly-interest', () => 'ran', { wait: 1000 })).resolves.toBe('ran');
  }, 30_000);
});
