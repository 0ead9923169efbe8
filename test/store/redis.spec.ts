import { Redis } from 'ioredis';
import { redisStore } from '../support/lock-services.js';
import { startRedis } from '../support/redis-server.js';
import { promisesOfLocks } from './lock-contract.js';

promisesOfLocks('one Redis', async () => {
  const server = await startRedis();
  const redis = new Redis(server.url);
  return {
    store: () => redisStore({ connection: server.url }),
    stop: async () => {
      redis.disconnect();
      await server.stop();
    },
    lockKeys: () => redis.keys('lock:*'),
  };
});
