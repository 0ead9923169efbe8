import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { LockUnavailableError, type RedisLockModuleOptions } from 'nest-redis-lock';
import { until } from '../support/deferred.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';

const BRIEF_LEASE_MS = 400;

/** Longer than a server takes to be there again. */
const LEASE_MS = 3000;

/** `WAITAOF` came with Redis 7.2. */
const canWait = await (async () => {
  const server = await startRedis();
  const redis = new Redis(server.url);
  const known = (await redis.call('COMMAND', 'INFO', 'WAITAOF')) as unknown[];
  redis.disconnect();
  await server.stop();
  return known[0] !== null;
})();

describe('durability with aof', () => {
  const open: (() => unknown)[] = [];

  afterEach(async () => {
    for (const close of open.splice(0).reverse()) await close();
  });

  async function start(...options: string[]): Promise<RedisServer> {
    const folder = mkdtempSync(join(tmpdir(), 'nest-redis-lock-aof-'));
    const server = await startRedis('--dir', folder, ...options);
    open.push(() => server.stop().then(() => rmSync(folder, { recursive: true })));
    return server;
  }

  /** Connects when the server is old enough to be trusted with such leases. */
  async function client(server: RedisServer, leaseMs = BRIEF_LEASE_MS): Promise<Redis> {
    const redis = new Redis(server.url, { maxRetriesPerRequest: null, retryStrategy: () => 20 }).on(
      'error',
      () => undefined,
    );
    open.push(() => redis.disconnect());
    await until(
      async () => Number(/uptime_in_seconds:(\d+)/.exec(await redis.info('server'))![1]) * 1000 >= leaseMs + 1000,
      10_000,
    );
    return redis;
  }

  function durable({ url }: RedisServer, { replicas = 0, timeout = 400, lease = BRIEF_LEASE_MS } = {}) {
    const terms: RedisLockModuleOptions = {
      connection: url,
      lease,
      commandTimeout: '5s',
      shutdownGrace: 0,
      durability: { replicas, timeout, aof: true },
    };
    const locks = lockService(redisStore(terms), terms);
    open.push(() => locks.close());
    return locks;
  }

  it("a grant that must be on disk is undone, with the reason, on a server that can't do that", async () => {
    const server = await start();
    const redis = await client(server);
    const told = canWait
      ? /keeps no append-only file: set "appendonly yes", or leave out "durability\.aof"/
      : /Only Redis 7\.2 or later, and Valkey, can wait for a disk: upgrade it/;
    const error: unknown = await durable(server)
      .lock('a')
      .catch((error: unknown) => error);
    expect(error).toBeInstanceOf(LockUnavailableError);
    expect((error as LockUnavailableError).detail).toMatch(told);
    await until(async () => (await redis.exists('lock:a')) === 0);
  });

  if (!canWait) return;

  it('a grant that must be on disk is there when the server was killed and started again', async () => {
    const server = await start('--appendonly', 'yes', '--appendfsync', 'always');
    const redis = await client(server, LEASE_MS);
    const lock = await durable(server, { lease: LEASE_MS }).lock('a');
    await server.kill();
    await server.restart();
    expect(await redis.get('lock:a')).toBe(lock.token);
  }, 20_000);

  it('a grant that must be on disk is undone when the disk does not have it in time', async () => {
    const server = await start('--appendonly', 'yes', '--appendfsync', 'no');
    const redis = await client(server);
    await expect(durable(server).lock('a')).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/had not written the lock to its disk within 400 ms, so it was released/),
    );
    await until(async () => (await redis.exists('lock:a')) === 0);
  });

  it('a grant that must be on the disks of replicas is there', async () => {
    const server = await start('--appendonly', 'yes', '--appendfsync', 'always');
    const redis = await client(server, LEASE_MS);
    await redis.config('SET', 'repl-diskless-sync-delay', 0);
    await expect(durable(server, { replicas: 1 }).lock('a')).rejects.toHaveProperty(
      'detail',
      expect.stringMatching(/Only 0 of the 1 replicas that "durability" asks for had the lock on disk within 400 ms/),
    );

    const replica = await start('--appendonly', 'yes', '--appendfsync', 'always');
    await (await client(replica)).replicaof('127.0.0.1', server.port);
    await until(async () => ((await redis.call('WAITAOF', 1, 1, 100)) as number[])[1] === 1, 10_000);
    // Replicas say once a second how much they have written.
    const lock = await durable(server, { replicas: 1, timeout: 2000, lease: LEASE_MS }).lock('a');
    await replica.kill();
    await replica.restart();
    expect(await (await client(replica)).get('lock:a')).toBe(lock.token);
  }, 30_000);
});
