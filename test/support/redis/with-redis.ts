import { afterAll, beforeAll, beforeEach } from '@jest/globals';
import { Redis } from 'ioredis';
import { startRedis, type RedisServer } from './redis-server.js';

interface OneRedis {
  readonly server: RedisServer;
  /** For commands of the test itself. */
  readonly redis: Redis;
}

/** Starts a Redis for all tests of the block, empties it before each, and stops it. */
export function withRedis(use: (one: OneRedis) => void): void {
  let server: RedisServer;
  let redis: Redis;

  beforeAll(async () => {
    server = await startRedis();
    redis = new Redis(server.url);
    use({ server, redis });
  });

  afterAll(async () => {
    redis.disconnect();
    await server.stop();
  });

  beforeEach(async () => void (await redis.flushall()));
}
