import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError, type LockOptions } from 'nest-redis-lock';
import { aborted, turn, until } from '../support/deferred.js';
import { figures, sized } from '../support/lab.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { Random } from '../support/model/random.js';
import { startProxy, type TcpProxy } from '../support/redis/tcp-proxy.mjs';
import { withRedis } from '../support/redis/with-redis.js';
import type { RedisServer } from '../support/redis/redis-server.js';

const SEED = Number(process.env['SEED'] ?? Date.now() % 1e6);
const ROUNDS = sized(8, 1000);
const COMMAND_TIMEOUT_MS = 75;
/** Nothing in here may last as long. */
const LEASE = '1m';
/** Whoever waits misses the message that it is its turn, and asks again. */
const WAIT = '20s';

/** The services: the replies to `here` get lost, those to `there` do not. */
interface Sides {
  readonly here: ClosableLockService;
  readonly there: ClosableLockService;
  /** A key of this round alone. */
  readonly key: string;
}

type Round = (sides: Sides) => Promise<unknown>;

const withLock =
  (options: LockOptions, keys = 1): Round =>
  ({ here, key }) =>
    here.withLock(
      Array.from({ length: keys }, (_, at) => `${key}:${at}`),
      (lock) => lock.assertHeld(),
      { wait: 0, ...options },
    );

const ROUNDS_OF: Record<string, Round> = {
  'lock and unlock': withLock({}),
  'three keys': withLock({}, 3),
  'a reader': withLock({ mode: 'read' }),
  'a permit': withLock({ permits: 2 }),
  fair: withLock({ fair: true }),
  tryLock: async ({ here, key }) => expect(await (await here.tryLock(key))?.unlock()).toBe(true),
  extend: ({ here, key }) => here.withLock(key, (lock) => lock.extend('2m'), { wait: 0 }),
  downgrade: ({ here, key }) => here.withLock(key, (lock) => lock.downgrade(), { wait: 0 }),
  'a turn in the queue': async ({ here, there, key }) => {
    const first = await there.lock(key);
    const second = here.withLock(key, (lock) => lock.assertHeld(), { wait: WAIT });
    second.catch(() => undefined);
    await turn();
    expect(await first.unlock()).toBe(true);
    await second;
  },
  'isLocked and inspect': async ({ here, there, key }) => {
    const lock = await there.lock(key);
    try {
      expect([await here.isLocked(key), (await here.inspect(key))?.holder.token]).toEqual([true, lock.token]);
    } finally {
      expect(await lock.unlock()).toBe(true);
    }
  },
  forceUnlock: async ({ here, there, key }) => {
    const lock = await there.lock(key);
    try {
      expect(await here.forceUnlock(key)).toBe(true);
      expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken' });
    } finally {
      await lock.unlock();
    }
  },
};

describe('When replies get lost, and the connections with them', () => {
  let server: RedisServer;
  let redis: Redis;
  let proxy: TcpProxy;
  let here: ClosableLockService;
  let there: ClosableLockService;
  withRedis((one) => ({ server, redis } = one));

  beforeEach(async () => {
    proxy = await startProxy(server.port);
    const service = (connection: string, commandTimeout: number) =>
      lockService(redisStore({ connection, commandTimeout }), { lease: LEASE, shutdownGrace: 0 });
    here = service(proxy.url, COMMAND_TIMEOUT_MS);
    there = service(server.url, 5000);
  });

  afterEach(async () => {
    await here.close();
    await there.close();
    await proxy.stop();
  });

  it.each(Object.entries(ROUNDS_OF))(
    'lost replies make nobody block himself and no lock look lost, and leave nothing behind: %s',
    async (name, round) => {
      const random = new Random(SEED + name.length * 7919);
      let rate = 0;
      let lost = 0;
      let unavailable = 0;
      proxy.dropReplies((_chunk, wire) => {
        if (!random.chance(rate)) return false;
        lost++;
        // The server's words that come after it must not be taken for an answer to something else.
        if (random.chance(0.5)) wire.cut();
        else wire.replies.drop();
        return true;
      });
      for (let count = 0; count < ROUNDS; count++) {
        rate = 0.01 + 0.19 * random.next();
        await round({ here, there, key: `${name}:${count}` }).catch(async (error: unknown) => {
          if (!(error instanceof LockUnavailableError))
            throw new Error(`round ${count} of SEED=${SEED}`, { cause: error });
          unavailable++;
          // While it is down, calls fail at once, and no reply could get lost. Each try to connect loses replies, too,
          // and they get rarer.
          await until(
            () =>
              here.isLocked('anything').then(
                () => true,
                () => false,
              ),
            60_000,
          );
        });
      }
      rate = 0;
      proxy.cut();
      await until(
        async () => (await redis.keys('lock:*')).length + (await redis.keys('{lock:*:queue')).length === 0,
        5000,
      ).catch(async () => {
        throw new Error(`SEED=${SEED}: left in Redis: ${(await redis.keys('*')).join(', ')}`);
      });
      await until(() => here.withLock('at the end', () => true).catch(() => false));
      figures(`Replies lost, ${name}`, 'no self-block, no false loss, nothing left', {
        rounds: ROUNDS,
        lost,
        unavailable,
      });
    },
    sized(60_000, 3_600_000),
  );
});
