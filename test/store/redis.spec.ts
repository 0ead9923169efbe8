import type { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import { redisStore } from '../support/stores/lock-services.js';
import type { RedisServer } from '../support/redis/redis-server.js';
import { withRedis } from '../support/redis/with-redis.js';
import type { Backing } from './backing.js';
import { promisesOfLists } from './list-contract.js';
import { promisesOfLocks } from './lock-contract.js';
import { promisesOfNesting } from './nesting-contract.js';
import { promisesOfSharing } from './sharing-contract.js';

let server: RedisServer;
let redis: Redis;
withRedis((one) => ({ server, redis } = one));

const start = async (): Promise<Backing> => ({
  store: () => redisStore({ connection: server.url }),
  stop: async () => undefined,
  waiters: (key, count) => until(async () => (await redis.zcard(`{lock:${key}}:queue`)) === count),
  lockKeys: async () => (await redis.keys('*')).filter((key) => key !== '{lock:}:fence'),
});

promisesOfLocks('one Redis', start);
promisesOfSharing('one Redis', start);
promisesOfLists('one Redis', start);
promisesOfNesting('one Redis', start);
