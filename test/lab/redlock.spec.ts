import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { until } from '../support/deferred.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { ON_QUORUM, Load } from '../support/processes/load.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { RedisServers } from '../support/redis/redis-servers.js';

const LEASE_MS = 1000;
const ROUNDS = sized(3, 100);

const MASTERS = LONG ? [[3, 1] as const, [5, 2] as const] : [[5, 2] as const];

describe.each(MASTERS)('Redlock on %i masters of which %i fail', (count, failing) => {
  let servers: RedisServers;
  let load: Load | undefined;
  let here: ClosableLockService;

  beforeEach(async () => {
    servers = await RedisServers.start(count);
    await servers.trusted(LEASE_MS);
    here = lockService(redisStore({ connection: servers.urls, lease: LEASE_MS }), { lease: LEASE_MS });
  }, 20_000);

  afterEach(async () => {
    await load?.end();
    await here.close();
    await servers.stop();
  });

  const which = (round: number) => Array.from({ length: failing }, (_, number) => (round + number) % count);

  /** How long it takes to get and give back a key that nobody else wants, in ms. */
  async function sectionMs(): Promise<number> {
    const took: number[] = [];
    for (let times = 0; times < 30; times++) {
      const startedAt = performance.now();
      await here.withLock('alone', () => undefined);
      took.push(performance.now() - startedAt);
    }
    return percentile(took, 0.5);
  }

  const start = async () => {
    load = await Load.start({
      connection: servers.urls,
      options: { lease: LEASE_MS, wait: '20s' },
      ...ON_QUORUM,
    });
    return load;
  };

  async function judged(what: string, values: Readonly<Record<string, number>>): Promise<void> {
    const { sections, failed, left } = await load!.stop();
    const verdict = judge(sections, { census: await census(servers.able, LEASE_MS, left) });
    figures(
      `Redlock, ${failing} of ${count} masters ${what}`,
      '0 double majorities; no call waits for the failed masters',
      {
        ...values,
        sections: sections.length,
        'double majorities': verdict.count('S1'),
        'fences that decreased': verdict.count('S2'),
        ...failed,
      },
    );
    expect(verdict.examples()).toBe('');
  }

  it(
    'masters that hang again and again make nobody wait, and let nobody in twice',
    async () => {
      const load = await start();
      await load.goesOn();
      const slower: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        const healthyMs = await sectionMs();
        for (const at of which(round)) servers.hang(at);
        slower.push((await sectionMs()) / healthyMs);
        await load.goesOn(2);
        for (const at of which(round)) servers.goOn(at);
        // Only so many fail at a time: those that went on are connected again before others hang.
        await until(() =>
          here.withLock('everywhere', async () =>
            (await Promise.all(servers.clients.map((client) => client.exists('lock:everywhere')))).every(Boolean),
          ),
        );
      }
      await judged('hang', {
        rounds: ROUNDS,
        'time of a section, compared with all healthy: p50': percentile(slower, 0.5),
        p99: percentile(slower, 0.99),
      });
    },
    LONG ? 300_000 : 60_000,
  );

  it(
    'masters that are dead make nobody wait, and let nobody in twice',
    async () => {
      const load = await start();
      await load.goesOn();
      const healthyMs = await sectionMs();
      await servers.kill(...which(0));
      const slower: number[] = [];
      for (let round = 0; round < ROUNDS; round++) {
        slower.push((await sectionMs()) / healthyMs);
        await load.goesOn(2);
      }
      await judged('are dead', {
        rounds: ROUNDS,
        'time of a section, compared with all healthy: p50': percentile(slower, 0.5),
        p99: percentile(slower, 0.99),
      });
    },
    LONG ? 300_000 : 60_000,
  );
});
