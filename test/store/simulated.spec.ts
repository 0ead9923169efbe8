import { MemoryLockStore } from 'nest-redis-lock/testing';
import { SimulatedLockStore } from '../../lib/testing/simulated-lock.store.js';
import { until } from '../support/deferred.js';
import type { Backing } from './backing.js';
import { promisesOfLocks } from './lock-contract.js';
import { promisesOfNesting } from './nesting-contract.js';
import { promisesOfSharing } from './sharing-contract.js';

const KEYS_OF_THE_CONTRACT = ['account:1', 'account:2', 'account:3', 'a', 'b', 'c'];

/** While nothing is simulated, it is the store below it. */
const start = async (): Promise<Backing> => {
  const memory = new MemoryLockStore();
  const store = new SimulatedLockStore(memory);
  return {
    store: () => store,
    stop: async () => undefined,
    waiters: (key, count) => until(() => memory.waiters(key) === count),
    lockKeys: async () => {
      const locked = await Promise.all(KEYS_OF_THE_CONTRACT.map((key) => store.isLocked(key)));
      return KEYS_OF_THE_CONTRACT.filter((key, index) => locked[index] || memory.waiters(key) > 0);
    },
  };
};

promisesOfLocks('simulated', start);
promisesOfSharing('simulated', start);
promisesOfNesting('simulated', start);
