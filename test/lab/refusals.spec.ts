import { setTimeout as sleep } from 'node:timers/promises';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { census } from '../support/checker/census.js';
import { judge } from '../support/checker/verdict.js';
import { lost } from '../support/processes/contenders.js';
import { until } from '../support/deferred.js';
import { figures, LONG, sized } from '../support/lab.js';
import { ALL_MODES, Load } from '../support/processes/load.js';
import { freePort } from '../support/free-port.mjs';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';

const LEASE_MS = 600;
const ROUNDS = sized(2, 50);

/** Something to read from the disk, slowly: half a second. */
const [FILLING, SLOW_US] = [1000, 500];

describe('One Redis under load', () => {
  let folder: string;
  let server: RedisServer;
  let redis: Redis;
  let load: Load | undefined;

  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-refusals-'));
    server = await startRedis(
      '--dir',
      folder,
      '--enable-debug-command',
      'yes',
      '--loading-process-events-interval-bytes',
      '1024',
      '--key-load-delay',
      String(SLOW_US),
    );
    redis = new Redis(server.url, { retryStrategy: () => 20, maxRetriesPerRequest: null, maxLoadingRetryTime: 50 }).on(
      'error',
      () => undefined,
    );
    load = undefined;
  });

  afterEach(async () => {
    await load?.end();
    redis.disconnect();
    await server.stop();
    rmSync(folder, { recursive: true });
  });

  /** How many commands the server refused with this word, since it was started. */
  const refused = async (word: string) =>
    Number(new RegExp(`errorstat_${word}:count=(\\d+)`).exec(await redis.info('errorstats'))?.[1] ?? 0);

  /** Until it has refused some, and for some time more: up to one and a half leases. */
  async function refuses(word: string, before: number): Promise<void> {
    await until(async () => (await refused(word)) >= before + 3, 10_000);
    await sleep(Math.random() * 1.5 * LEASE_MS);
  }

  /** Each lets it refuse commands for a while. */
  const FAULTS: Record<string, () => Promise<void>> = {
    READONLY: async () => {
      const before = await refused('READONLY');
      // Nobody is there, so it keeps what it has.
      await redis.replicaof('127.0.0.1', await freePort());
      await refuses('READONLY', before);
      await redis.replicaof('NO', 'ONE');
    },
    OOM: async () => {
      const before = await refused('OOM');
      await redis.config('SET', 'maxmemory', 1);
      await refuses('OOM', before);
      await redis.config('SET', 'maxmemory', 0);
    },
    // Clients that are connected are refused.
    LOADING: async () => void (await redis.call('DEBUG', 'RELOAD')),
    // Those that connect see that it is not ready.
    'LOADING after a restart': async () => {
      const last = redis.duplicate({ retryStrategy: () => null, maxRetriesPerRequest: 0 }).on('error', () => undefined);
      await last.call('SHUTDOWN', 'SAVE').catch(() => undefined);
      await until(() => !server.isRunning);
      await server.restart();
    },
  };

  it.each(Object.keys(FAULTS).filter((word) => LONG || !word.includes('restart')))(
    'calls go on or fail with an error of ours while Redis refuses commands (%s), and nobody enters twice',
    async (word) => {
      if (word.startsWith('LOADING'))
        await redis.eval(`for i = 1, ${FILLING} do redis.call('SET', 'filling:' .. i, string.rep('x', 100)) end`, 0);
      load = await Load.start({
        connection: server.url,
        options: { lease: LEASE_MS, wait: '20s', commandTimeout: '300ms' },
        ...ALL_MODES,
      });
      for (let round = 0; round < ROUNDS; round++) {
        await load.goesOn(5);
        await FAULTS[word]!();
      }
      await load.goesOn(5);
      const refusals = await refused(word);
      expect(refusals).toBeGreaterThanOrEqual(word.includes('restart') ? 0 : ROUNDS);
      const { sections, failed, left } = await load.stop();
      await redis.eval(`for i = 1, ${FILLING} do redis.call('DEL', 'filling:' .. i) end`, 0);
      const verdict = judge(sections, { census: await census([redis], LEASE_MS, left) });
      figures(`${word} under load`, 'recovery, or a lock error; 0 double grants', {
        times: ROUNDS,
        ...(refusals > 0 && { 'commands refused': refusals }),
        sections: sections.length,
        'locks lost': lost(sections).length,
        'double grants': verdict.count('S1'),
        'fences that decreased': verdict.count('S2'),
        ...failed,
      });
      expect(verdict.examples()).toBe('');
    },
    LONG ? 300_000 : 30_000,
  );
});
