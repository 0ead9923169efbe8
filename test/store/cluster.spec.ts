import { once } from 'node:events';
import { afterAll, beforeAll } from '@jest/globals';
import { until } from '../support/deferred.js';
import { redisStore } from '../support/stores/lock-services.js';
import { startCluster, type RedisCluster } from '../support/redis/redis-cluster.js';
import type { Backing } from './backing.js';
import { promisesOfLists } from './list-contract.js';
import { promisesOfLocks } from './lock-contract.js';
import { promisesOfSharing } from './sharing-contract.js';

let cluster: RedisCluster;

beforeAll(async () => {
  cluster = await startCluster();
}, 30_000);

afterAll(() => cluster.stop());

const start = async (): Promise<Backing> => {
  const client = cluster.client();
  await once(client, 'ready');
  return {
    handOffsAreConfirmed: true,
    store: () => redisStore({ connection: client }),
    stop: async () => {
      client.disconnect();
      await cluster.flush();
    },
    waiters: (key, count) => until(async () => (await client.zcard(`{lock:${key}}:queue`)) === count),
    lockKeys: async () => {
      const keys = await Promise.all(cluster.masters.map(({ redis }) => redis.keys('*')));
      return keys.flat().filter((key) => !/^\{lock:\w+\}:fence$/.test(key));
    },
  };
};

promisesOfLocks('a Redis Cluster', start);
promisesOfSharing('a Redis Cluster', start);
promisesOfLists('a Redis Cluster', start);
