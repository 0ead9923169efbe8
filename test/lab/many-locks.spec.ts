import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { type Lock, LockUnavailableError, type RedisLockModuleOptions } from 'nest-redis-lock';
import { TestChild } from '../support/processes/child-process.js';
import { until } from '../support/deferred.js';
import { figures, LONG, sized } from '../support/lab.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';
import { startRedis } from '../support/redis/redis-server.js';
import { startReplicated } from '../support/redis/replicas.js';

describe('Many locks', () => {
  it(
    'many locks are all renewed while one of two replicas hangs, which a grant asks for',
    async () => {
      const servers = await startReplicated(2);
      const terms: RedisLockModuleOptions = {
        connection: servers.master.url,
        lease: sized(3000, 5000),
        wait: '10s',
        shutdownGrace: 0,
        durability: { replicas: 1, timeout: 500 },
      };
      const here = lockService(redisStore(terms), terms);
      try {
        await until(
          () =>
            here.lock('first').then(
              (lock) => lock.unlock(),
              (error) => !(error instanceof LockUnavailableError),
            ),
          10_000,
        );
        const count = sized(2000, 10_000);
        const locks: Lock[] = [];
        // In portions: a busy machine may need more than the command time-out for all at once.
        while (locks.length < count) {
          const portion = Array.from({ length: 250 }, (_, number) => here.lock(`account:${locks.length + number}`));
          locks.push(...(await Promise.all(portion)));
        }
        process.kill(servers.replicas[0]!.pid, 'SIGSTOP');
        // Each is renewed several times meanwhile.
        await sleep(sized(4000, 30_000));
        const expired = locks.filter(({ isHeld }) => !isHeld).length;
        process.kill(servers.replicas[0]!.pid, 'SIGCONT');
        figures(
          `Locks held while one of two replicas hangs; lease ${sized(3, 5)} s; durability: one of two replicas`,
          'no lock expires',
          { locks: count, expired: expired },
        );
        expect(expired).toBe(0);
      } finally {
        await here.close();
        await servers.stop();
      }
    },
    LONG ? 120_000 : 40_000,
  );

  it('many locks are released at SIGTERM as soon as the work under them ends; waiters are refused', async () => {
    const server = await startRedis();
    const redis = new Redis(server.url);
    try {
      const app = new TestChild('drain.mjs', server.url, 100, 100);
      await app.message();
      await until(
        async () => (await redis.keys('{lock:held:*}:queue')).length + (await redis.keys('lock:held:*')).length >= 100,
      );
      app.process.kill('SIGTERM');
      const refused = app.message();
      const endedAt = performance.now();
      app.send('finish');
      expect(await refused).toBe('LOCK_UNAVAILABLE');
      await until(async () => (await redis.keys('lock:held:*')).length === 0);
      const releasedMs = performance.now() - endedAt;
      await app.exit();
      expect(app.process.signalCode ?? app.process.exitCode).toBe('SIGTERM');
      figures(
        'SIGTERM with 100 locks held and 100 callers waiting',
        'all released 1 s after the last work ended, at the latest',
        { 'released after ms': releasedMs, 'process gone after ms': performance.now() - endedAt },
      );
      expect(releasedMs).toBeLessThan(1000);
    } finally {
      redis.disconnect();
      await server.stop();
    }
  }, 30_000);
});
