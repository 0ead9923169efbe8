import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { clock, lost } from '../support/contenders.js';
import { lostAfter } from '../support/faults.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { Load } from '../support/load.js';
import { canStep, SteppedRedis } from '../support/stepped-redis.js';

const LEASE_MS = 1500;
const HOUR_MS = 3_600_000;
const SIZES_MS = LONG ? [1000, 10_000, 60_000, 600_000, HOUR_MS] : [HOUR_MS];

/** A holder hears of it with its next renewal, when a third of the lease is over; the rest is for a busy machine. */
const NOTICED_MS = LEASE_MS / 3 + sized(500, 250);

const WHAT = 'The clock of the server is stepped by 1 s to 1 h, forward and back';

if (!canStep) figures(WHAT, 'not tried in this run: it takes a C compiler', {});

(canStep ? describe : describe.skip)('The clock of the server', () => {
  let stepped: SteppedRedis;
  let redis: Redis;
  let load: Load | undefined;

  beforeEach(async () => {
    stepped = await SteppedRedis.start();
    redis = new Redis(stepped.server.url);
  });

  afterEach(async () => {
    await load?.end();
    redis.disconnect();
    await stepped.stop();
  });

  it('is set forward and back under load: fences grow; two are inside only right after a step forward, until the first of them hears of it', async () => {
    load = await Load.start({ connection: stepped.server.url, options: { lease: LEASE_MS, wait: '20s' }, keys: ['a', 'b', 'shared', 'permits'], processes: 2, callers: 4, holdMs: [0, 10], stayMs: [200, 2000] });
    const forward: number[] = [];
    let steps = 0;
    for (const size of SIZES_MS) {
      for (const [off, isForward] of [[size, true], [0, false], [-size, false], [0, true]] as const) {
        await load.goesOn(5);
        if (isForward) forward.push(clock());
        stepped.setOff(off);
        steps++;
        const [seconds] = await redis.time();
        expect(Math.abs(Number(seconds) * 1000 - Date.now() - off)).toBeLessThan(2000);
      }
    }
    await load.goesOn(5);
    const { sections, failed, left } = await load.stop();
    const noticed = forward.flatMap((at) => lostAfter(sections, at, LEASE_MS));
    const all = judge(sections);
    const apart = sections.filter(({ beganAt, endedAt }) => !forward.some((at) => beganAt < at + NOTICED_MS && endedAt > at));
    const others = judge(apart, { census: await census([redis], LEASE_MS, left) });
    figures(WHAT, 'fences grow; a holder hears of a step forward at the next renewal, lease/3', {
      'steps': steps, 'sections': sections.length, 'fences that went back': all.count('S2'), 'locks lost': lost(sections).length, 'after the step forward, ms: p50': percentile(noticed, 0.5), 'latest': Math.max(...noticed),
      'double grants right after a step forward': all.count('S1') - others.count('S1'), 'at any other time': others.count('S1'), ...failed,
    }); // prettier-ignore
    expect(all.examples('S2', 'S3', 'S7')).toBe('');
    expect(others.examples()).toBe('');
    expect(Math.max(0, ...noticed)).toBeLessThan(NOTICED_MS);
  }, LONG ? 300_000 : 60_000);
});
