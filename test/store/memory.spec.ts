import { MemoryLockStore } from 'nest-redis-lock/testing';
import { until } from '../support/deferred.js';
import type { Backing } from './backing.js';
import { promisesOfLocks } from './lock-contract.js';
import { promisesOfNesting } from './nesting-contract.js';
import { promisesOfSharing } from './sharing-contract.js';

const KEYS_OF_THE_CONTRACT = ['account:1', 'account:2', 'account:3', 'a', 'b', 'c'];

const start = async (): Promise<Backing> => {
  const store = new MemoryLockStore();
  return {
    store: () => store,
    stop: async () => undefined,
    waiters: (key, count) => until(() => store.waiters(key) === count),
    lockKeys: async () => {
      const locked = await Promise.all(KEYS_OF_THE_CONTRACT.map((key) => store.isLocked(key)));
      return KEYS_OF_THE_CONTRACT.filter((key, index) => locked[index] || store.waiters(key) > 0);
    },
  };
};

promisesOfLocks('memory', start);
promisesOfSharing('memory', start);
promisesOfNesting('memory', start);
