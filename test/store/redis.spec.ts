import { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import { redisStore } from '../support/stores/lock-services.js';
import { startRedis } from '../support/redis/redis-server.js';
import type { Backing } from './backing.js';
import { promisesOfLocks } from './lock-contract.js';
import { promisesOfNesting } from './nesting-contract.js';
import { promisesOfSharing } from './sharing-contract.js';

const start = async (): Promise<Backing> => {
  const server = await startRedis();
  const redis = new Redis(server.url);
  return {
    store: () => redisStore({ connection: server.url }),
    stop: async () => {
      redis.disconnect();
      await server.stop();
    },
    waiters: (key, count) => until(async () => (await redis.zcard(`{lock:${key}}:queue`)) === count),
    lockKeys: async () => (await redis.keys('*')).filter((key) => key !== '{lock:}:fence'),
  };
};

promisesOfLocks('one Redis', start);
promisesOfSharing('one Redis', start);
promisesOfNesting('one Redis', start);
