import { Redis } from 'ioredis';
import { rival } from '../rivals/rival.mjs';
import { withUsing } from './redlock.mjs';

const { createLock, IoredisAdapter } = rival('redlock-universal');

export const options = 'retryDelay 10 ms, retryAttempts 1,000,000; one lock object per key, kept; ioredis 6';

/** Keeps its lock objects: a new one sends a PING before its first acquire. */
function locksOf(url, { leaseMs }) {
  const adapter = new IoredisAdapter(new Redis(url));
  const locks = new Map();
  return (key) => {
    let lock = locks.get(key);
    if (!lock)
      locks.set(key, (lock = createLock({ adapter, key, ttl: leaseMs, retryDelay: 10, retryAttempts: 1_000_000 })));
    return lock;
  };
}

async function manual(url, settings) {
  const lockOf = locksOf(url, settings);
  return {
    async section(key, work) {
      const lock = lockOf(key);
      const handle = await lock.acquire();
      try {
        return await work();
      } finally {
        await lock.release(handle);
      }
    },
  };
}

async function using(url, settings) {
  const lockOf = locksOf(url, settings);
  return withUsing((key, work) => lockOf(key).using(work));
}

export const forms = { acquire: manual, using };
