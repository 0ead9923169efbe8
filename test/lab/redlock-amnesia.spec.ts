import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { figures, LONG, sized } from '../support/lab.js';
import { ON_QUORUM, Load } from '../support/processes/load.js';
import { RedisServers } from '../support/redis/redis-servers.js';

const LEASE_MS = 1000;
const ROUNDS = sized(3, 100);

const MASTERS = LONG ? [[3, 1] as const, [5, 2] as const] : [[5, 2] as const];

describe.each(MASTERS)('Redlock on %i masters of which %i forget everything', (count, failing) => {
  let servers: RedisServers;
  let load: Load | undefined;

  beforeEach(async () => {
    servers = await RedisServers.start(count);
    await servers.trusted(LEASE_MS);
  }, 20_000);

  afterEach(async () => {
    await load?.end();
    await servers.stop();
  });

  it(
    'masters that are restarted empty again and again let nobody in twice',
    async () => {
      load = await Load.start({
        connection: servers.urls,
        options: { lease: LEASE_MS, wait: '20s' },
        ...ON_QUORUM,
      });
      for (let round = 0; round < ROUNDS; round++) {
        await load.goesOn(5);
        await servers.restart(...Array.from({ length: failing }, (_, number) => (round + number) % count));
        await load.goesOn(5);
        // Only so many have forgotten something at a time.
        await servers.trusted(LEASE_MS);
      }
      const { sections, failed, left } = await load.stop();
      const verdict = judge(sections, { redisForgets: true, census: await census(servers.clients, LEASE_MS, left) });
      figures(`Redlock, ${failing} of ${count} masters are restarted empty`, '0 double majorities', {
        rounds: ROUNDS,
        sections: sections.length,
        'double majorities': verdict.count('S1'),
        'fences that decreased': verdict.count('S2'),
        ...failed,
      });
      expect(verdict.examples()).toBe('');
    },
    LONG ? 600_000 : 60_000,
  );
});
