import { Redis } from 'ioredis';
import { rival } from '../rivals/rival.mjs';

const { default: Redlock } = rival('redlock');

export const options =
  'retryCount -1, retryDelay 10 ms, retryJitter 10 ms, automaticExtensionThreshold 2/3 of the lease; ioredis 6';

export const redlockSettings = ({ leaseMs }) => ({
  retryCount: -1,
  retryDelay: 10,
  retryJitter: 10,
  automaticExtensionThreshold: Math.floor((leaseMs * 2) / 3),
});

async function manual(url, settings) {
  const redlock = new Redlock([new Redis(url)], redlockSettings(settings));
  return {
    async section(key, work) {
      const lock = await redlock.acquire([key], settings.leaseMs);
      try {
        return await work();
      } finally {
        await lock.release();
      }
    },
  };
}

async function using(url, settings) {
  const redlock = new Redlock([new Redis(url)], redlockSettings(settings));
  return withUsing((key, work) => redlock.using([key], settings.leaseMs, work));
}

/** A section, and a lock that is held, out of a function that runs work inside a lock. */
export function withUsing(section) {
  return {
    section,
    hold: (key) =>
      new Promise((held, failed) => section(key, () => new Promise((release) => held(release))).catch(failed)),
  };
}

export const forms = { acquire: manual, using };
