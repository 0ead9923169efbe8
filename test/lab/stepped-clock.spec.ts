import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { clock, lost, type Section } from '../support/processes/contenders.js';
import { aborted } from '../support/deferred.js';
import { lostAfter } from '../support/redis/faults.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { Load } from '../support/processes/load.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';
import { canStep, SteppedRedis } from '../support/redis/stepped-redis.js';

const LEASE_MS = 1500;
const HOUR_MS = 3_600_000;
const SIZES_MS = LONG ? [1000, 10_000, 60_000, 600_000, HOUR_MS] : [HOUR_MS];

/** A holder hears that the server has ended its lease with its next renewal; the rest is for a busy machine. */
const NOTICED_MS = LEASE_MS / 3 + sized(500, 250);

/** When all is over that a step forward can do: one that is shorter than the lease only ends it sooner. */
const OVER_MS = LEASE_MS + NOTICED_MS;

const WHAT = 'The clock of the server is stepped by 1 s to 1 h, forward and back';

if (!canStep) figures(WHAT, 'not tried in this run: it takes a C compiler', {});

(canStep ? describe : describe.skip)('The clock of the server', () => {
  let stepped: SteppedRedis;
  let redis: Redis;
  let load: Load | undefined;

  beforeEach(async () => {
    load = undefined;
    stepped = await SteppedRedis.start();
    redis = new Redis(stepped.server.url);
  });

  afterEach(async () => {
    await load?.end();
    redis.disconnect();
    await stepped.stop();
  });

  /** Whether the other came in while this one was inside, and should not have. Permits are not looked at. */
  const isAgainst = (one: Section, other: Section) =>
    one.keys[0] === other.keys[0] &&
    other.beganAt > one.beganAt &&
    other.beganAt < one.endedAt &&
    one.mode !== 'permit' &&
    !(one.mode === 'read' && other.mode === 'read');

  it(
    'a server clock that is stepped never makes a fence go back; two are inside only after a step forward',
    async () => {
      load = await Load.start({
        connection: stepped.server.url,
        options: { lease: LEASE_MS, wait: '20s' },
        keys: ['a', 'b', 'shared', 'permits'],
        processes: 2,
        callers: 4,
        holdMs: [0, 10],
        stayMs: [200, 2000],
      });
      const forward: number[] = [];
      let steps = 0;
      for (const size of SIZES_MS) {
        for (const [off, isForward] of [
          [size, true],
          [0, false],
          [-size, false],
          [0, true],
        ] as const) {
          await load.goesOn(5);
          if (isForward) forward.push(clock());
          stepped.setOff(off);
          steps++;
          if (isForward) await sleep(OVER_MS);
          const [seconds] = await redis.time();
          expect(Math.abs(Number(seconds) * 1000 - Date.now() - off)).toBeLessThan(2000);
        }
      }
      await load.goesOn(5);
      const { sections, failed, left } = await load.stop();
      const noticed = forward.flatMap((at) => lostAfter(sections, at, OVER_MS));
      const together = lost(sections).flatMap((one) =>
        sections.filter((other) => isAgainst(one, other)).map(({ beganAt }) => one.endedAt - beganAt),
      );
      const all = judge(sections);
      const apart = sections.filter(
        ({ beganAt, endedAt, unlockedAt = endedAt }) =>
          !forward.some((at) => beganAt < at + OVER_MS && unlockedAt > at),
      );
      const others = judge(apart, { census: await census([redis], LEASE_MS, left) });
      figures(WHAT, 'fences grow; two holders are inside only after steps forward, and for lease/3 at most', {
        steps: steps,
        sections: sections.length,
        'fences that decreased': others.count('S2'),
        'locks lost': lost(sections).length,
        'after the step forward, ms: p50': percentile(noticed, 0.5),
        latest: Math.max(...noticed),
        'double grants after steps forward': all.count('S1') - others.count('S1'),
        'for ms, at most': Math.max(...together),
        'double grants at any other time': others.count('S1'),
        ...failed,
      });
      // A process that has not heard of it may let in some more of its own callers, with the fences that it has:
      // smaller ones.
      expect(all.examples('S3', 'S7')).toBe('');
      expect(others.examples()).toBe('');
      expect(Math.max(0, ...together)).toBeLessThan(NOTICED_MS);
    },
    LONG ? 300_000 : 60_000,
  );

  it("a server clock that is set back keeps a crashed holder's key longer; forceUnlock frees it", async () => {
    const here = lockService(redisStore({ connection: stepped.server.url }), { shutdownGrace: 0 });
    try {
      const lock = await here.lock('a', { lease: 200, watchdog: false });
      stepped.setOff(-HOUR_MS);
      expect(await aborted(lock.signal)).toMatchObject({ reason: 'expired' });
      expect(await redis.pttl('lock:a')).toBeGreaterThan(HOUR_MS - 10_000);
      expect(await here.forceUnlock('a')).toBe(true);
      const { fence } = await here.lock('a');
      expect(fence).toBeGreaterThan(lock.fence);
    } finally {
      await here.close();
    }
  }, 20_000);
});
