import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { lost, type Section } from '../support/processes/contenders.js';
import { figures, LONG, sized } from '../support/lab.js';
import { Load } from '../support/processes/load.js';
import { startCluster, tagAt, type RedisCluster } from '../support/redis/redis-cluster.js';
import { SlotMove } from '../support/redis/slot-move.js';

const LEASE_MS = 1500;
const ROUNDS = sized(3, 51);

/** For how long those who share a key are not where the rest of it is: they can't be renewed meanwhile. */
const APART_MS = 400;

/** How many may share a key of which they do not read: see `children/hammer.mjs`. */
const PERMITS = 3;

/** The same in any order. */
const shuffled = <Item>(items: readonly Item[]): Item[] =>
  items
    .map((item) => ({ item, at: Math.random() }))
    .sort((a, b) => a.at - b.at)
    .map(({ item }) => item);

/** How many wrote inside of their own reader. */
function nested(sections: readonly Section[]): number {
  const readers = new Set(sections.filter(({ mode }) => mode === 'read').map(({ token }) => token));
  return sections.filter(({ mode, token }) => mode === 'write' && readers.has(token)).length;
}

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
    const counts = await Promise.all(
      cluster.masters.map(async ({ redis }) =>
        Number(new RegExp(`errorstat_${word}:count=(\\d+)`).exec(await redis.info('errorstats'))?.[1] ?? 0),
      ),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  }

  /** A lock and what belongs to it are in different places for a moment. */
  async function oneByOne(move: SlotMove): Promise<void> {
    await move.begin();
    await sleep(Math.random() * 200);
    for (const name of shuffled(await move.rest())) {
      await move.take(name);
      await sleep(Math.random() * 20);
    }
  }

  /** While they are inside and somebody waits, the key and its queue are there already, and who shares it is not. */
  async function sharersLast(move: SlotMove, key: string, least: number): Promise<void> {
    const holders = await move.crowded(key, least);
    await move.begin();
    for (const name of await move.rest()) if (name !== holders) await move.take(name);
    await sleep(APART_MS);
  }

  it(
    'locks of all kinds stay when their slots move, key by key: nobody enters twice, and no lock is lost by it',
    async () => {
      const tags = [0, 1, 2].map((master) => tagAt(master)) as [string, string, string];
      // Alone, shared in all ways, several of one slot and of several.
      const alone = [...tags.flatMap((tag) => [`${tag}a`, [`${tag}a`, `${tag}b`]]), tags.map((tag) => `${tag}b`)];
      // Most callers go where others are, so that permits are all taken now and then.
      const keys = [
        ...alone,
        ...tags.flatMap((tag) => [
          `shared${tag}`,
          `shared${tag}`,
          `permits${tag}`,
          `permits${tag}`,
          `permits${tag}`,
          `nested${tag}`,
          `nested${tag}`,
        ]),
      ];
      const owners = [0, 1, 2];
      const connection = { cluster: cluster.masters.map(({ port }) => ({ host: '127.0.0.1', port })) };
      load = await Load.start({
        connection,
        options: { lease: LEASE_MS, wait: '20s' },
        keys,
        processes: 2,
        callers: 12,
        holdMs: [0, 10],
        stayMs: [200, 2000],
        sharersStay: 0.4,
      });
      for (let round = 0; round < ROUNDS; round++) {
        await load.goesOn(5);
        const which = Math.floor(round / 3) % tags.length;
        const [from, to] = [owners[which]!, (owners[which]! + 1 + (round % 2)) % 3];
        const move = new SlotMove(cluster, tags[which]!, from, to);
        if (round % 3 === 0) await sharersLast(move, `shared${tags[which]!}`, 1);
        else if (round % 3 === 1) await sharersLast(move, `permits${tags[which]!}`, PERMITS);
        else await oneByOne(move);
        await move.finish();
        owners[which] = to;
      }
      await load.goesOn(5);
      const { sections, failed, left } = await load.stop();
      const [moved, ask, tryAgain] = [await answered('MOVED'), await answered('ASK'), await answered('TRYAGAIN')];
      const verdict = judge(sections, {
        census: await census(
          cluster.masters.map(({ redis }) => redis),
          LEASE_MS,
          left,
        ),
      });
      figures('Cluster, slots move with locks in them', '0 double grants; recovery, or an error of ours', {
        moves: ROUNDS,
        'answered with MOVED': moved,
        ASK: ask,
        TRYAGAIN: tryAgain,
        sections: sections.length,
        'of readers who write inside': nested(sections),
        'locks lost': lost(sections).length,
        'double grants': verdict.count('S1'),
        'fences that decreased': verdict.count('S2'),
        ...failed,
      });
      expect(nested(sections)).toBeGreaterThan(0);
      expect(moved + ask + tryAgain).toBeGreaterThanOrEqual(ROUNDS);
      expect(verdict.examples()).toBe('');
    },
    LONG ? 600_000 : 60_000,
  );
});
