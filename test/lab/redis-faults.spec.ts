import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { Lock } from 'nest-redis-lock';
import { census } from '../support/checker/census.js';
import { stallsBeforeBegin } from '../support/checker/fences.js';
import { judge } from '../support/checker/verdict.js';
import { lost } from '../support/processes/contenders.js';
import { aborted } from '../support/deferred.js';
import { figures, LONG, percentile, sized } from '../support/lab.js';
import { ALL_MODES, Load } from '../support/processes/load.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';

const LEASE_MS = 600;

/** How much later than it is due a renewal may bring its answer. */
const ANSWER_MS = 100;

/** A lease is ended by a timer, which may come late: so somewhat before its end. */
const ENDED_EARLIER_MS = 3;

describe('One Redis', () => {
  let server: RedisServer;
  let redis: Redis;
  let here: ClosableLockService;

  beforeEach(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
    here = lockService(redisStore({ connection: server.url }), { lease: LEASE_MS, shutdownGrace: 0 });
  });

  afterEach(async () => {
    await here.close();
    redis.disconnect();
    await server.stop();
  });

  it.each([
    ['DEL', ({ keys: [key] }: Lock) => redis.del(`lock:${key}`)],
    ['FLUSHALL', () => redis.flushall()],
  ])(
    'the holder of a lock that Redis forgot, by %s, notices at the next renewal',
    async (what, forget) => {
      // On a busy machine, the reply to a renewal must come before the lease is over.
      const lease = 3 * LEASE_MS;
      const noticed: number[] = [];
      for (let round = 0; round < sized(5, 100); round++) {
        const lock = await here.lock(`account:${round}`, { lease });
        // At any moment of the lease, before or after a renewal.
        await sleep(Math.random() * lease);
        const forgottenAt = performance.now();
        await forget(lock);
        expect(await aborted(lock.signal)).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
        noticed.push(performance.now() - forgottenAt);
      }
      figures(`${what} while a lock is held (lease ${lease} ms)`, 'loss noticed at the next renewal, lease/3', {
        times: noticed.length,
        'noticed after ms: p50': percentile(noticed, 0.5),
        latest: Math.max(...noticed),
      });
      expect(percentile(noticed, 0.9)).toBeLessThan(lease / 3 + ANSWER_MS);
      expect(Math.max(...noticed)).toBeLessThan(lease);
    },
    LONG ? 300_000 : 30_000,
  );

  it(
    'nobody enters twice while Redis forgets scripts, hangs up or stands still; calls go on, or fail with our errors',
    async () => {
      const load = await Load.start({
        connection: server.url,
        options: { lease: LEASE_MS, wait: '20s', commandTimeout: '300ms' },
        ...ALL_MODES,
      });
      try {
        const rounds = sized(1, 50);
        for (let round = 0; round < rounds; round++) {
          for (const [command, ...words] of [
            ['SCRIPT', 'FLUSH'],
            ['CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes'],
            ['CLIENT', 'KILL', 'TYPE', 'pubsub'],
            ['CLIENT', 'PAUSE', 200],
            ['CLIENT', 'PAUSE', 500],
          ] as const) {
            await redis.call(command, ...words);
            await load.goesOn(5);
          }
        }
        const { sections, failed, left } = await load.stop();
        const verdict = judge(sections, { census: await census([redis], LEASE_MS, left) });
        figures('SCRIPT FLUSH, CLIENT KILL, CLIENT PAUSE under load', 'recovery, or a lock error; 0 double grants', {
          'times each': rounds,
          sections: sections.length,
          'double grants': verdict.count('S1'),
          'fences that decreased': verdict.count('S2'),
          ...failed,
        });
        expect(verdict.examples()).toBe('');
      } finally {
        await load.end();
      }
    },
    LONG ? 300_000 : 60_000,
  );

  it(
    'a lease ends without Redis: after a blocked event loop, the signal has aborted before the next timer runs',
    async () => {
      const [never, standStill] = [
        new Int32Array(new SharedArrayBuffer(4)),
        (ms: number) => Atomics.wait(never, 0, 0, ms),
      ];
      const leaseMs = 100;
      const rounds = sized(10, 200);
      for (let round = 0; round < rounds; round++) {
        const blockedMs = leaseMs * (0.3 + (2.7 * round) / (rounds - 1));
        const lock = await here.lock('blocked', { lease: leaseMs });
        const { signal } = lock;
        const endsAt = performance.now() + lock.remaining();
        standStill(blockedMs);
        const isOver = performance.now() >= endsAt;
        await new Promise((done) => setTimeout(done));
        const goesOn = performance.now() < endsAt - ENDED_EARLIER_MS;
        expect({ blockedMs, wrong: isOver ? !signal.aborted : signal.aborted && goesOn }).toEqual({
          blockedMs,
          wrong: false,
        });
        if (isOver)
          expect(() => lock.assertHeld()).toThrow(expect.objectContaining({ detail: expect.stringMatching(/lost/i) }));
        await lock.unlock();
      }
      figures('Event loop blocked for 0.3 to 3 leases', 'signal aborted before the next timer runs', {
        times: rounds,
        'signals too late': 0,
      });
    },
    LONG ? 120_000 : 20_000,
  );

  it(
    'the lock of a process that stands still goes to the next caller, and that process knows as soon as it goes on',
    async () => {
      const rounds = sized(4, 100);
      const load = await Load.start({
        connection: server.url,
        options: { lease: LEASE_MS, wait: '20s' },
        keys: ['a', 'shared', 'permits'],
        processes: 3,
        callers: 3,
        holdMs: [0, 10],
        stayMs: [100, 600],
      });
      try {
        // A process that runs its first lines takes long from a grant to the first line of a body.
        await load.goesOn(10);
        // Two of the three at a time.
        for (let round = 0; round < rounds; round += 2) {
          // At any moment of their work: not just after somebody went in, which is when we hear of it.
          await sleep(Math.random() * 50);
          await Promise.all(
            [round, round + 1].map((which) => load.standStill(which, LEASE_MS * (0.5 + Math.random() * 4.5))),
          );
          await load.goesOn(2);
        }
        const { sections, failed, left } = await load.stop();
        const verdict = judge(sections, { standsStill: true, census: await census([redis], LEASE_MS, left) });
        const tooLate = stallsBeforeBegin(sections);
        figures(
          'A process is stopped (SIGSTOP) for 0.5 to 5 leases',
          'no other caller is inside while its locks say that they are held; fences grow',
          {
            times: rounds,
            sections: sections.length,
            'locks lost': lost(sections).length,
            'double grants': verdict.count('S1'),
            'fences that decreased': verdict.count('S2'),
            'stale writes, refused by comparing fences': verdict.refusedWrites,
            'stopped just before the first line': tooLate,
            ...failed,
          },
        );
        expect(verdict.examples()).toBe('');
        expect(tooLate).toBeLessThanOrEqual(1 + rounds / 20);
      } finally {
        await load.end();
      }
    },
    LONG ? 600_000 : 60_000,
  );
});
