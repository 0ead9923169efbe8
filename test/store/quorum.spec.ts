import { Redis } from 'ioredis';
import { until } from '../support/deferred.js';
import { trustingQuorum } from '../support/stores/lock-services.js';
import { startRedis } from '../support/redis/redis-server.js';
import type { Backing } from './backing.js';
import { promisesOfLists } from './list-contract.js';
import { promisesOfLocks } from './lock-contract.js';

const start = async (): Promise<Backing> => {
  const servers = await Promise.all([startRedis(), startRedis(), startRedis()]);
  const clients = servers.map(({ url }) => new Redis(url));
  return {
    store: () => trustingQuorum(servers.map(({ url }) => url)),
    stop: async () => {
      for (const client of clients) client.disconnect();
      await Promise.all(servers.map((server) => server.stop()));
    },
    waiters: () => Promise.reject(new Error('Nobody queues in a quorum.')),
    lockKeys: async () => {
      let keys: string[] = [];
      // A call is over when a majority has done it; the others are given a moment.
      await until(async () => (keys = await lockKeys(clients)).length === 0, 500).catch(() => undefined);
      return keys;
    },
  };
};

async function lockKeys(clients: readonly Redis[]): Promise<string[]> {
  const keys = await Promise.all(clients.map((client) => client.keys('*')));
  return keys.flat().filter((key) => key !== '{lock:}:fence');
}

promisesOfLocks('a quorum of three Redis', start, { queues: false });
promisesOfLists('a quorum of three Redis', start, { shares: false });
