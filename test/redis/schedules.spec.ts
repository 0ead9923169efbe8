import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { until } from '../support/deferred.js';
import { figures, sized } from '../support/lab.js';
import { drawSchedule, runSchedule, type Outcome, type Stage } from '../support/model/lock-schedule.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';

/** `SEED=42` runs the schedule 42 and no other. */
const ONLY = process.env['SEED'];
const FIRST = 1;

const seeds = (count: number) => (ONLY ? [Number(ONLY)] : Array.from({ length: count }, (_, index) => FIRST + index));

/** Longer than the interval at which the shortest lease of a schedule is renewed, shorter than that lease. */
const SET_BACK_MS = 120;

const SERVICES = 3;

/** Keys that hold the tokens of released locks once more, until they expire. */
interface SetBack {
  readonly seed: number;
  readonly keys: readonly string[];
  readonly goneAt: number;
}

describe('Whatever callers do, and when,', () => {
  describe('on Redis', () => {
    let server: RedisServer;
    let redis: Redis;
    let proxies: TcpProxy[];
    let services: ClosableLockService[];
    let stage: Stage;

    beforeAll(async () => {
      server = await startRedis();
      redis = new Redis(server.url);
      proxies = await Promise.all(Array.from({ length: SERVICES }, () => startProxy(server.port)));
      services = proxies.map(({ url }) => lockService(redisStore({ connection: url }), { shutdownGrace: 0 }));
      stage = { services, cut: (service) => proxies[service]!.cut(), ping: () => redis.ping() };
    });

    afterAll(async () => {
      await Promise.all(services.map((service) => service.close()));
      await Promise.all(proxies.map((proxy) => proxy.stop()));
      redis.disconnect();
      await server.stop();
    });

    /** Nothing of a schedule is left long before its leases are over. */
    const nothingLeft = async (seed: number) =>
      until(async () => (await redis.keys(`*:${seed}:*`)).length === 0, 3000).catch(async () => {
        throw new Error(`Left in Redis: ${(await redis.keys(`*:${seed}:*`)).join(', ')}`);
      });

    /** Puts the tokens of released locks back, for a moment: whoever still renews one of them keeps it there. */
    async function setBack(seed: number, { released }: Outcome): Promise<SetBack> {
      const last = new Map(released.map(({ key, token }) => [`lock:${key}`, token]));
      await Promise.all([...last].map(([key, token]) => redis.set(key, token, 'PX', SET_BACK_MS)));
      return { seed, keys: [...last.keys()], goneAt: performance.now() + SET_BACK_MS + 5 };
    }

    it(
      'one caller at a time holds a key on Redis, fences grow, every call settles, and nothing is left or renewed',
      async () => {
        let grants = 0;
        let cut = 0;
        const wereSetBack: SetBack[] = [];
        const notRenewed = async ({ seed, keys, goneAt }: SetBack) => {
          // A key that is still there then was renewed.
          const left = goneAt - performance.now();
          if (left > 0) await sleep(left);
          const kept = keys.length > 0 ? await redis.exists(...keys) : 0;
          expect({ replayWith: `SEED=${seed}`, renewedAfterRelease: kept }).toEqual({
            replayWith: `SEED=${seed}`,
            renewedAfterRelease: 0,
          });
        };
        for (const seed of seeds(sized(150, 10_000))) {
          const schedule = drawSchedule(seed, SERVICES, true);
          const outcome = await runSchedule(schedule, stage);
          const wrong = [...outcome.wrong];
          await nothingLeft(seed).catch((error: Error) => wrong.push(error.message));
          expect({ replayWith: `SEED=${seed}`, wrong }).toEqual({ replayWith: `SEED=${seed}`, wrong: [] });
          wereSetBack.push(await setBack(seed, outcome));
          while (wereSetBack.length > 0 && wereSetBack[0]!.goneAt < performance.now())
            await notRenewed(wereSetBack.shift()!);
          grants += outcome.grants;
          cut += schedule.cuts.length;
        }
        for (const one of wereSetBack) await notRenewed(one);
        expect(await redis.keys('*')).toEqual(['{lock:}:fence']);
        figures(
          'Random schedules: calls begin, give up, are aborted and cut off at any moment',
          'one holder at a time; every call settles; nothing left, nothing renewed after its release',
          { schedules: seeds(sized(150, 10_000)).length, grants, cuts: cut },
        );
      },
      sized(90_000, 3_600_000),
    );
  });

  describe('on the memory store', () => {
    it(
      'one caller at a time holds a key in the memory store, fences grow, every call settles, and nothing is left',
      async () => {
        const store = new MemoryLockStore();
        const services = Array.from({ length: SERVICES }, () => lockService(store, { shutdownGrace: 0 }));
        let grants = 0;
        const all = seeds(sized(300, 10_000));
        for (let at = 0; at < all.length; at += 10) {
          await Promise.all(
            all.slice(at, at + 10).map(async (seed) => {
              const outcome = await runSchedule(drawSchedule(seed, SERVICES, false), {
                services,
                cut: () => undefined,
              });
              const wrong = [...outcome.wrong];
              for (const key of ['a', 'b', 'c'])
                if (await store.isLocked(`${seed}:${key}`)) wrong.push(`${key} is still locked`);
              expect({ replayWith: `SEED=${seed}`, wrong }).toEqual({ replayWith: `SEED=${seed}`, wrong: [] });
              grants += outcome.grants;
            }),
          );
        }
        await Promise.all(services.map((service) => service.close()));
        figures(
          'The same with the memory store, without cuts',
          'one holder at a time; every call settles; nothing left',
          { schedules: all.length, grants },
        );
      },
      sized(60_000, 1_200_000),
    );
  });
});
