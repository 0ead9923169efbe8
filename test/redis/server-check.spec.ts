import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import type { LockService } from 'nest-redis-lock';
import { problemsOf } from '../../lib/redis/connection/server-check.js';
import { deferred } from '../support/deferred.js';
import { lockService, redisStore } from '../support/stores/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis/redis-server.js';

describe('The check of a server', () => {
  let server: RedisServer;
  let client: Redis;

  beforeAll(async () => {
    server = await startRedis();
    client = new Redis(server.url);
  });

  afterAll(async () => {
    await client.quit();
    await server.stop();
  });

  /** Returns what the log says of the server meanwhile. */
  async function whatIsTold(work: (locks: LockService) => Promise<unknown>, user = ''): Promise<string[]> {
    const told: string[] = [];
    const connection = server.url.replace('redis://', `redis://${user}`);
    const locks = lockService(redisStore({ connection }, { unfit: (_server, problem) => told.push(problem) }));
    await work(locks);
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await work(locks);
    await locks.close();
    return told;
  }

  const warnings = (user?: string) => whatIsTold((locks) => locks.withLock('a', () => undefined), user);

  it('a server that evicts keys is reported once, with what to set', async () => {
    await client.config('SET', 'maxmemory', '100mb');
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await warnings()).toEqual([
      expect.stringMatching(/"maxmemory-policy allkeys-lru".*second holder.*noeviction/),
    ]);
  });

  it('a server that evicts keys is reported also when the app lends a client that is ready already', async () => {
    const told = deferred<string>();
    const store = redisStore({ connection: client }, { unfit: (_server, problem) => told.resolve(problem) });
    store.open!();
    expect(await told.promise).toContain('allkeys-lru');
    await store.close();
  });

  it('a server without a memory limit, or that evicts nothing, is not reported', async () => {
    await client.config('SET', 'maxmemory', '0');
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    expect(await warnings()).toEqual([]);
    await client.config('SET', 'maxmemory', '100mb');
    await client.config('SET', 'maxmemory-policy', 'noeviction');
    expect(await warnings()).toEqual([]);
  });

  it('a server is not reported for a user that may not ask for INFO', async () => {
    await client.config('SET', 'maxmemory', '100mb');
    await client.config('SET', 'maxmemory-policy', 'allkeys-lru');
    await client.call('ACL', 'SETUSER', 'shy', 'on', '>pw', '~*', '&*', '+@all', '-info');
    expect(await warnings('shy:pw@')).toEqual([]);
  });

  it('a replica is reported, with the address of its master', async () => {
    await client.config('SET', 'maxmemory', '0');
    await client.replicaof('127.0.0.1', 1);
    const told = await whatIsTold((locks) =>
      expect(locks.withLock('a', () => undefined)).rejects.toMatchObject({
        detail: expect.stringContaining('READONLY'),
      }),
    );
    await client.replicaof('NO', 'ONE');
    expect(told).toEqual([expect.stringMatching(/^it is a replica, of 127\.0\.0\.1:1, .*Give the master/)]);
  });

  it.each([
    ['a client that looks for the master by itself', 'role:slave\r\ncluster_enabled:0\r\n', true],
    ['a replica in a cluster, which redirects', 'role:slave\r\ncluster_enabled:1\r\n', false],
    ['a master', 'role:master\r\ncluster_enabled:0\r\n', false],
  ])('this server is not called a replica: %s', (_what, info, findsMaster) => {
    expect(problemsOf(info, { findsMaster })).toEqual([]);
  });

  it.each([
    ['5.0.14', 1],
    ['6.0.20', 1],
    ['6.2.0', 0],
    ['7.0.15', 0],
    ['10.1.0', 0],
  ])('an old server is recognized by its version: %s', (version, problems) => {
    expect(problemsOf(`# Server\r\nredis_version:${version}\r\nredis_mode:standalone\r\n`)).toHaveLength(problems);
  });

  it('a server that says nothing of itself is not reported', () => {
    expect(problemsOf('')).toEqual([]);
  });
});
