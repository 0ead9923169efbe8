import { expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { figures, LONG, sized } from '../support/lab.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';
import { startRedis } from '../support/redis/redis-server.js';
import { collectGarbage } from '../support/collect-garbage.js';

const CALLERS = 50;
const DURATION_MS = sized(4000, 600_000);

/**
 * What a heap may have grown by: some caches fill, whatever the number of keys; a note for each key would need twenty
 * times as much.
 */
const SOME_MB = 5;

it(
  'ever new keys, of all kinds, leave nothing behind: neither in this process nor in Redis',
  async () => {
    const server = await startRedis();
    const redis = new Redis(server.url);
    const terms = { connection: server.url, commandTimeout: '10s', lease: '10s' } as const;
    const services = [lockService(redisStore(terms), terms), lockService(redisStore(terms), terms)];
    const heapMb = () => {
      collectGarbage();
      return process.memoryUsage().heapUsed / 2 ** 20;
    };
    const startedAt = performance.now();
    let sections = 0;

    async function call(number: number, untilMs: number): Promise<void> {
      const locks = services[number % services.length]!;
      for (let round = number; performance.now() < startedAt + untilMs; round += CALLERS) {
        // Two callers share each key, so that many wait.
        const key = `order:${Math.floor(round / 2)}`;
        await locks.withLock(key, () => undefined);
        await locks.withLock(`r:${key}`, () => undefined, { mode: round % 3 ? 'read' : 'write' });
        await locks.withLock(`p:${key}`, () => undefined, { permits: 2 });
        await locks.withLock([`x:${key}`, `y:${key}`], () => locks.withLock(`x:${key}`, () => undefined));
        await (await locks.tryLock(`t:${key}`))?.unlock();
        sections += 5;
      }
    }
    const callUntil = (ms: number) => Promise.all(Array.from({ length: CALLERS }, (_, number) => call(number, ms)));

    try {
      await callUntil(DURATION_MS / 4);
      const [before, sectionsBefore] = [heapMb(), sections];
      await callUntil(DURATION_MS);
      const grownMb = heapMb() - before;
      const keys = (await redis.keys('*')).filter((key) => key !== '{lock:}:fence');
      figures('Soak: ever new keys of all kinds', 'memory and the number of keys in Redis stay flat', {
        minutes: DURATION_MS / 60_000,
        sections: sections,
        'heap grown in the last three quarters, MB': grownMb,
        by: sections - sectionsBefore,
        'keys left in Redis': keys.length,
      });
      expect(keys).toEqual([]);
      expect(grownMb).toBeLessThan(SOME_MB);
    } finally {
      for (const service of services) await service.close();
      redis.disconnect();
      await server.stop();
    }
  },
  LONG ? 900_000 : 30_000,
);
