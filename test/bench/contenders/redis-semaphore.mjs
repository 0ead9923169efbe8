import { Redis } from 'ioredis';
import { rival } from '../rivals/rival.mjs';

const { Mutex } = rival('redis-semaphore');

export const options = 'retryInterval 10 ms (its default), acquireTimeout 2 min, refreshInterval lease/3; ioredis 6';

async function open(url, { leaseMs }) {
  const redis = new Redis(url);
  const settings = {
    lockTimeout: leaseMs,
    refreshInterval: Math.floor(leaseMs / 3),
    retryInterval: 10,
    acquireTimeout: 120_000,
  };

  async function hold(key) {
    const mutex = new Mutex(redis, key, settings);
    await mutex.acquire();
    return mutex;
  }
  return {
    hold,
    async section(key, work) {
      const mutex = await hold(key);
      try {
        return await work();
      } finally {
        await mutex.release();
      }
    },
  };
}

export const forms = { Mutex: open };
