import { Redis } from 'ioredis';

export const options = 'ioredis 6, a connection for each caller; no lease: if a holder dies, nobody ever gets in again';

const batonOf = (key) => `${key}:baton`;

/**
 * Whoever takes the baton out of the list is inside. Redis serves those who wait in their order, so nothing is asked
 * twice.
 */
async function open(url, { callers }) {
  const idle = Array.from({ length: callers }, () => new Redis(url));
  await Promise.all(idle.map((redis) => redis.ping()));
  return {
    async section(key, work) {
      const redis = idle.pop();
      try {
        await redis.blpop(batonOf(key), 0);
        try {
          return await work();
        } finally {
          await redis.lpush(batonOf(key), 'baton');
        }
      } finally {
        idle.push(redis);
      }
    },
  };
}

/** Once for each key, before anybody wants it. */
export async function placeBatons(redis, keys) {
  for (const key of keys) await redis.lpush(batonOf(key), 'baton');
}

export const forms = { BLPOP: open };
