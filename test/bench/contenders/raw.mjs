import { createHash, randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

export const options = 'ioredis 6; lease 30 s; not renewed';

const DELETE_IF_MINE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const SHA = createHash('sha1').update(DELETE_IF_MINE).digest('hex');

/** What a careful person writes by hand: two commands, and no waiting when the key is taken. */
async function open(url, { leaseMs, ...clientOptions }) {
  const redis = new Redis(url, clientOptions);
  await redis.script('LOAD', DELETE_IF_MINE);
  return {
    async section(key, work) {
      const token = randomUUID();
      if ((await redis.set(key, token, 'PX', leaseMs, 'NX')) !== 'OK') throw new Error(`${key} is taken`);
      try {
        return await work();
      } finally {
        await redis.evalsha(SHA, 1, key, token);
      }
    },
  };
}

export const forms = {
  plain: open,
  'auto-pipelining': (url, settings) => open(url, { ...settings, enableAutoPipelining: true }),
};
