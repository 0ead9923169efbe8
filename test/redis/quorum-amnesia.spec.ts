import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError, type Duration, type Granted, type Lock } from 'nest-redis-lock';
import { turn, until } from '../support/deferred.js';
import { figures, sized } from '../support/lab.js';
import { lockService, redisStore, type ClosableLockService } from '../support/stores/lock-services.js';
import { Random } from '../support/model/random.js';
import { RedisServers } from '../support/redis/redis-servers.js';
import { canStep, SteppedRedis } from '../support/redis/stepped-redis.js';
import { startProxy } from '../support/redis/tcp-proxy.mjs';

const LEASE_MS = 1000;
const ROUNDS = sized(1, 100);
const SEED = Number(process.env['SEED'] ?? Date.now() % 1e6);

describe('A node of a quorum that came up without its data', () => {
  let servers: RedisServers;
  let here: ClosableLockService;
  let there: ClosableLockService;

  const service = (lease: number) =>
    lockService(redisStore({ connection: servers.urls, lease }), { lease, shutdownGrace: 0 });
  const granted = (locks: ClosableLockService): Promise<Lock | null> =>
    locks.tryLock('a', { watchdog: false }).catch(() => null);
  async function had(locks: ClosableLockService): Promise<Lock> {
    let lock: Lock | null = null;
    await until(async () => (lock = await granted(locks)) !== null);
    return lock!;
  }

  /** Takes the lock, and answers when its lease is over, whether its holder hears of trouble or not. */
  async function taken(): Promise<number> {
    const lock = await had(here);
    return performance.now() + lock.remaining();
  }

  const leftUntil = (end: number) => Math.max(0, end - performance.now());
  const infosAskedOf = async (at: number) =>
    Number(/cmdstat_info:calls=(\d+)/.exec(await servers.clients[at]!.info('commandstats'))![1]);

  beforeAll(async () => {
    servers = await RedisServers.start(5);
  });

  beforeEach(() => {
    here = service(LEASE_MS);
    there = service(LEASE_MS);
  });

  afterEach(async () => {
    await here.close();
    await there.close();
  });

  afterAll(() => servers.stop());

  it('a node that came up without its data grants nothing for the longest lease, and the error says so', async () => {
    const patient = service(60_000);
    const error: unknown = await patient.lock('a', { wait: 0 }).catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect((error as LockUnavailableError).detail).toMatch(
      /^3 of 5 nodes failed, and a lock needs 3 that agree\. Redis at 127\.0\.0\.1:\d+ was started a moment ago .* grants none for another (59|6\d) s, until the longest lease \(60000 ms\) has passed/,
    );
    expect(new Set((error as LockUnavailableError).detail.match(/127\.0\.0\.1:\d+/g)).size).toBe(3);
    await patient.close();
  });

  it('a node is asked for its age once, when the connection is made', async () => {
    await servers.trusted(LEASE_MS);
    const lock = await had(here);
    // A majority is enough for that. Clients ask, too, when they connect, and the subscription is one of them.
    await until(
      async () =>
        (await servers.clients[2]!.get('lock:a')) === lock.token &&
        ((await servers.clients[2]!.pubsub('CHANNELS', '*')) as string[]).length > 0,
    );
    await lock.unlock();
    const before = await infosAskedOf(2);
    for (let count = 0; count < 20; count++) await here.withLock('a', () => undefined);
    expect(await infosAskedOf(2)).toBe(before + 1);
  });

  it('a node is asked for its age again after each reconnect; a run that was trusted stays trusted', async () => {
    await servers.trusted(LEASE_MS);
    await (await had(here)).unlock();
    await here.withLock('b', () => undefined, { lease: '1h' });
    await here.withLock('a', () => undefined);
    const before = await infosAskedOf(2);
    await Promise.all(
      servers.clients.map((client) => client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes')),
    );
    await until(
      async () => (await infosAskedOf(2)) > before && (await granted(here).then((lock) => lock?.unlock())) === true,
    );
    await (await had(here)).unlock();
  });

  it('a key that stays longer than it was held does not stop grants', async () => {
    await servers.trusted(LEASE_MS);
    const store = redisStore({ connection: servers.urls, lease: LEASE_MS });
    const terms = { leaseMs: LEASE_MS, sharing: 'exclusive', label: undefined, queue: false } as const;
    const job = await store.acquire({ ...terms, keys: ['job'], token: 'one' });
    expect(await store.release({ keys: ['job'], token: (job as Granted).token!, leaseMs: LEASE_MS }, 3_600_000)).toBe(
      true,
    );
    expect(await store.acquire({ ...terms, keys: ['a'], token: 'two' })).toMatchObject({ granted: true });
    await store.close();
    await Promise.all(servers.clients.map((client) => client.flushall()));
  });

  it('a node that is slow to tell its age keeps no lock that was released meanwhile', async () => {
    await servers.trusted(LEASE_MS);
    const proxy = await startProxy(servers.all[4]!.port);
    const store = redisStore({ connection: [...servers.urls.slice(0, 4), proxy.url], lease: LEASE_MS });
    const locks = lockService(store, { lease: LEASE_MS, shutdownGrace: 0 });
    try {
      proxy.holdRequests((chunk) => chunk.includes('server'));
      store.open!();
      await until(() => proxy.wires.some(({ requests }) => requests.keepsBack));
      await locks.withLock('a', () => undefined);
      proxy.heal();
      for (const { requests } of proxy.wires) requests.release();
      await locks.close();
      expect(await servers.keys()).toEqual([]);
    } finally {
      await locks.close();
      await proxy.stop();
    }
  });

  it(
    'a node that forgot does not make a second majority',
    async () => {
      const random = new Random(SEED);
      for (let round = 0; round < ROUNDS; round++) {
        await servers.trusted(LEASE_MS);
        await (await had(there)).unlock();
        const firstEnds = await taken();
        const forgetful = [0, 1, 2, 3, 4].sort(() => random.next() - 0.5).slice(0, 3);
        const restarted = servers.restart(...forgetful);
        const second = await had(there);
        expect({ seed: SEED, forgetful, tooEarlyMs: leftUntil(firstEnds) }).toEqual({
          seed: SEED,
          forgetful,
          tooEarlyMs: 0,
        });
        await second.unlock();
        await restarted;
      }
      figures('majorities that forgot', { rounds: ROUNDS });
    },
    sized(30_000, 3_600_000),
  );

  it('a node is not taken for older than it is, though it counts whole seconds', async () => {
    await servers.trusted(LEASE_MS);
    await until(() => Date.now() % 1000 > 800);
    const firstEnds = await taken();
    await servers.restart(0, 1, 2);
    await until(() => Date.now() % 1000 < 800);
    const late = service(LEASE_MS);
    await had(late);
    expect(leftUntil(firstEnds)).toBe(0);
    await late.close();
  });

  it('a node that came up without its data grants nothing to a call that was in flight when it died', async () => {
    await servers.trusted(LEASE_MS);
    await (await had(there)).unlock();
    const firstEnds = await taken();
    for (const at of [0, 1, 2]) servers.hang(at);
    const call = granted(there);
    await turn(); // the commands are under way
    await servers.restart(0, 1, 2);
    if (await call) expect(leftUntil(firstEnds)).toBe(0);
  });
});

(canStep ? describe : describe.skip)('A node of a quorum whose clock is set', () => {
  /** What the clocks are set by is longer, what the test takes is not. */
  const LONG_LEASE = '10m';
  let nodes: SteppedRedis[];
  let locks: ClosableLockService;

  const uptimes = () =>
    Promise.all(nodes.map(async ({ server }) => Number(/uptime_in_seconds:(\d+)/.exec(await infoOf(server.url))![1])));
  const olderThan = (seconds: number) => until(async () => (await uptimes()).every((uptime) => uptime > seconds));
  const start = (lease: Duration) =>
    lockService(redisStore({ connection: nodes.map(({ server }) => server.url), lease }), { lease, shutdownGrace: 0 });

  beforeEach(async () => {
    nodes = await Promise.all([0, 1, 2].map(() => SteppedRedis.start()));
  }, 30_000);

  afterEach(async () => {
    await locks.close();
    await Promise.all(nodes.map((node) => node.stop()));
  });

  it('a node that was started a moment ago is not taken for old when its clock is set forward', async () => {
    for (const node of nodes) node.setOff(3_600_000);
    await olderThan(3599);
    locks = start(LONG_LEASE);
    await expect(locks.lock('a', { wait: 0 })).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/was started a moment ago/),
    );
  });

  it('a node that was restarted with a wrong clock is not taken for old when the clock is set right', async () => {
    locks = start(LEASE_MS);
    const taken = (lease: Duration) =>
      until(
        () =>
          locks.lock('a', { wait: 0, lease }).then(
            (lock) => lock.unlock(),
            () => false,
          ),
        10_000,
      );
    await taken(LEASE_MS);
    await taken(LONG_LEASE);
    for (const node of nodes) node.setOff(-3_600_000);
    await Promise.all(nodes.map(({ server }) => server.restart()));
    for (const node of nodes) node.setOff(0);
    await olderThan(3599);
    await until(() =>
      locks.lock('a', { wait: 0 }).then(
        (lock) => lock.unlock(),
        (error: LockUnavailableError) => error.detail.includes('was started a moment ago'),
      ),
    );
    await expect(locks.lock('a', { wait: 0 })).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/nodes failed.*was started a moment ago/),
    );
  }, 20_000);
});

async function infoOf(url: string): Promise<string> {
  const redis = new Redis(url);
  const info = await redis.info('server');
  redis.disconnect();
  return info;
}
