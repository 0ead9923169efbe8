import { QuorumLockStore } from '../../lib/store/quorum/quorum-lock.store.js';
import { until } from '../support/deferred.js';
import { MemoryNode } from '../support/stores/memory-node.js';
import type { Backing } from './backing.js';
import { promisesOfLocks } from './lock-contract.js';

const KEYS_OF_THE_CONTRACT = ['account:1', 'account:2', 'account:3', 'a', 'b', 'c'];

/** Five nodes whose clocks differ by less than the shortest lease: one is slow, and one is always down. */
const start = async (): Promise<Backing> => {
  const nodes = [0, 80_000, -50_000, 20_000, 0].map(
    (aheadUs, at) => new MemoryNode({ aheadUs, delayMs: at === 3 ? 5 : 0 }),
  );
  nodes[4]!.isDown = true;
  const held = async () => {
    const locked = await Promise.all(
      KEYS_OF_THE_CONTRACT.map((key) => Promise.all(nodes.slice(0, 4).map((node) => node.isLocked(key)))),
    );
    return KEYS_OF_THE_CONTRACT.filter((_key, at) => locked[at]!.includes(true));
  };
  return {
    store: () => new QuorumLockStore(nodes),
    stop: async () => undefined,
    waiters: () => Promise.reject(new Error('Nobody queues in a quorum.')),
    lockKeys: async () => {
      let keys: string[] = [];
      // A call is over when a majority has done it; the others are given a moment.
      await until(async () => (keys = await held()).length === 0, 500).catch(() => undefined);
      return keys;
    },
  };
};

promisesOfLocks('a quorum of five memory stores, one of them slow and one down', start, { queues: false });
