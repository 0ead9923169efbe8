import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { clock } from '../support/processes/contenders.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { Load } from '../support/processes/load.js';
import { startSentinel, type RedisSentinel } from '../support/redis/redis-sentinel.js';
import { longestSilenceMs, lostAfter } from '../support/redis/faults.js';

const BRIEF_LEASE_MS = 1500;

/** Longer than a planned failover takes. */
const LEASE_MS = 10_000;
const ROUNDS = sized(1, 20);

const DURABLE = [
  ['the master is killed', 'one of two replicas', 1, 'killMaster', BRIEF_LEASE_MS],
  // The old master goes on for seconds, and the other replica follows it so long: its word is worth nothing then.
  ['an operator asks for it', 'both replicas', 2, 'failover', LEASE_MS],
] as const;
const PLAIN = [
  ['the master is killed', 'none', 0, 'killMaster', BRIEF_LEASE_MS],
  ['an operator asks for it', 'none', 0, 'failover', LEASE_MS],
] as const;

describe('Sentinel failover under full load', () => {
  let sentinel: RedisSentinel;
  let load: Load | undefined;

  beforeEach(async () => {
    sentinel = await startSentinel();
  }, 40_000);

  afterEach(async () => {
    await load?.end();
    await sentinel.stop();
  });

  // Without durability there is nothing that must hold but that calls recover and fences grow:
  // test/redis/sentinel.spec.ts looks at that too.
  it.each(LONG ? [...DURABLE, ...PLAIN] : DURABLE)(
    'nobody enters twice, and calls recover, when %s; durability: %s',
    async (what, durability, replicas, failOver, lease) => {
      const isDurable = replicas > 0;
      load = await Load.start({
        connection: sentinel.connection,
        options: { lease, wait: '20s', durability: isDurable ? { replicas, timeout: 500 } : 'none' },
        keys: Array.from({ length: 12 }, (_, number) => `account:${number}`),
        processes: 3,
        callers: 8,
        holdMs: [0, 10],
        stayMs: [200, 2000],
      });
      const faults: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        await load.goesOn(20);
        faults.push(clock());
        await sentinel[failOver]();
        await load.goesOn();
        await sentinel.heal();
      }
      const { sections, failed, left } = await load.stop();
      const { redis } = await sentinel.master();
      const verdict = judge(sections, { redisForgets: true, census: await census([redis], lease, left) });
      const silences = faults.map((at) => longestSilenceMs(sections, at));
      const lost = faults.flatMap((at) => lostAfter(sections, at, 10_000));
      figures(
        `Sentinel failover, ${what}; durability: ${durability}`,
        isDurable ? '0 double grants; fences grow' : 'calls recover',
        {
          failovers: ROUNDS,
          sections: sections.length,
          'double grants': verdict.count('S1'),
          'fences that decreased': verdict.count('S2'),
          'no grants for, ms: p50': percentile(silences, 0.5),
          longest: Math.max(...silences),
          'held at the failure and lost': lost.length,
          'signal after the failure, ms: p50': percentile(lost, 0.5),
          latest: Math.max(...lost),
          ...failed,
        },
      );
      expect(verdict.examples(...(isDurable ? [] : (['S3', 'S6', 'S7'] as const)))).toBe('');
      // Otherwise the old master gives locks for a moment together with the new one, each with fences of its own.
      if (failOver === 'killMaster') expect(verdict.examples('S2')).toBe('');
    },
    LONG ? 600_000 : 60_000,
  );
});
