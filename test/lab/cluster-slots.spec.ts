import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { lost } from '../support/contenders.js';
import { figures, LONG, sized } from '../support/lab.js';
import { Load } from '../support/load.js';
import { keyAt, startCluster, type RedisCluster } from '../support/redis-cluster.js';
import { SlotMove } from '../support/slot-move.js';

const LEASE_MS = 1500;
const ROUNDS = sized(2, 50);

describe('Cluster under full load', () => {
  let cluster: RedisCluster;
  let load: Load | undefined;

  beforeEach(async () => {
    cluster = await startCluster();
  }, 40_000);

  afterEach(async () => {
    await load?.end();
    await cluster.stop();
  });

  /** How often masters have answered with this word. */
  async function answered(word: string): Promise<number> {
    const counts = await Promise.all(cluster.masters.map(async ({ redis }) => Number(new RegExp(`errorstat_${word}:count=(\\d+)`).exec(await redis.info('errorstats'))?.[1] ?? 0)));
    return counts.reduce((sum, count) => sum + count, 0);
  }

  it('slots move with locks in them, one key after the other: nobody is let in twice, and no lock is lost by it', async () => {
    const keys = [0, 1, 2].map((master) => keyAt(master));
    const owners = [0, 1, 2];
    const connection = { cluster: cluster.masters.map(({ port }) => ({ host: '127.0.0.1', port })) };
    load = await Load.start({ connection, options: { lease: LEASE_MS, wait: '20s' }, keys, processes: 2, callers: 6, holdMs: [0, 10], stayMs: [200, 2000] });
    for (let round = 0; round < ROUNDS; round++) {
      await load.goesOn(5);
      const which = round % keys.length;
      const [from, to] = [owners[which]!, (owners[which]! + 1 + (round % 2)) % 3];
      const move = new SlotMove(cluster, keys[which]!, from, to);
      await move.begin();
      await new Promise((over) => setTimeout(over, Math.random() * 200));
      // A lock and what belongs to it are in different places for a moment.
      for (const name of await move.rest()) {
        await move.take(name);
        await new Promise((over) => setTimeout(over, Math.random() * 20));
      }
      await move.finish();
      owners[which] = to;
    }
    await load.goesOn(5);
    const { sections, failed, left } = await load.stop();
    const [moved, ask, tryAgain] = [await answered('MOVED'), await answered('ASK'), await answered('TRYAGAIN')];
    const verdict = judge(sections, { census: await census(cluster.masters.map(({ redis }) => redis), LEASE_MS, left) });
    figures('Cluster, slots move with locks in them', '0 double grants; recovery, or an error of ours', {
      'moves': ROUNDS, 'answered with MOVED': moved, 'ASK': ask, 'TRYAGAIN': tryAgain, 'sections': sections.length, 'locks lost': lost(sections).length, 'double grants': verdict.count('S1'), 'fences that went back': verdict.count('S2'), ...failed,
    }); // prettier-ignore
    expect(moved + ask + tryAgain).toBeGreaterThanOrEqual(ROUNDS);
    expect(verdict.examples()).toBe('');
  }, LONG ? 300_000 : 60_000);
});
