import { afterAll, beforeAll, describe, expect, it } from '@jest/globals';
import { Redis } from 'ioredis';
import { problemsOf } from '../../lib/redis/server-check.js';
import { lockService, redisStore } from '../support/lock-services.js';
import { startRedis, type RedisServer } from '../support/redis-server.js';

describe('A server that should not keep locks', () => {
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

  /** Takes a lock, drops the connection and takes another; returns what the log says of the server. */
  async function warnings(user = ''): Promise<string[]> {
    const told: string[] = [];
    const connection = server.url.replace('redis://', `redis://${user}`);
    const locks = lockService(redisStore({ connection }, { unfit: (_server, problem) => told.push(problem) }));
    await locks.withLock('a', () => undefined);
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
    await locks.withLock('a', () => undefined);
    await locks.close();
    return told;
  }

  it('is reported once when it evicts keys, and says what to set', async () => {
    await client.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
    expect(await warnings()).toEqual([expect.stringMatching(/"maxmemory-policy allkeys-lru".*second holder.*noeviction/)]);
  });

  it('is not reported when it has no memory limit, or evicts nothing', async () => {
    await client.config('SET', 'maxmemory', '0', 'maxmemory-policy', 'allkeys-lru');
    expect(await warnings()).toEqual([]);
    await client.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'noeviction');
    expect(await warnings()).toEqual([]);
  });

  it('keeps locks in silence for a user that may not ask for INFO', async () => {
    await client.config('SET', 'maxmemory', '100mb', 'maxmemory-policy', 'allkeys-lru');
    await client.call('ACL', 'SETUSER', 'shy', 'on', '>pw', '~*', '&*', '+@all', '-info');
    expect(await warnings('shy:pw@')).toEqual([]);
  });

  it.each([
    ['5.0.14', 1],
    ['6.0.20', 1],
    ['6.2.0', 0],
    ['7.0.15', 0],
    ['10.1.0', 0],
  ])('is told by its version: %s', (version, problems) => {
    expect(problemsOf(`# Server\r\nredis_version:${version}\r\nredis_mode:standalone\r\n`)).toHaveLength(problems);
  });

  it('says nothing of a server that tells nothing', () => {
    expect(problemsOf('')).toEqual([]);
  });
});
