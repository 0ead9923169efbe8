import { createHash, randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

export const options = 'ioredis 6; lease 30 s; not renewed';

const sha1 = (script) => createHash('sha1').update(script).digest('hex');

const DELETE_IF_MINE = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;
const SHA = sha1(DELETE_IF_MINE);

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

const SET_IF_NOBODY_WAITS = `
if redis.call('EXISTS', KEYS[2]) == 1 or not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return redis.call('INCR', KEYS[3])
`;
const DELETE_IF_NOBODY_WAITS = `if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`;

/** The same with a fence for each grant, and a look whether others wait: the least that can be asked of Redis for that. */
async function openFenced(url, { leaseMs, ...clientOptions }) {
  const redis = new Redis(url, clientOptions);
  const [take, giveBack] = [SET_IF_NOBODY_WAITS, DELETE_IF_NOBODY_WAITS].map(sha1);
  for (const script of [SET_IF_NOBODY_WAITS, DELETE_IF_NOBODY_WAITS]) await redis.script('LOAD', script);
  return {
    async section(key, work) {
      const token = randomUUID();
      const queue = `{${key}}:queue`;
      if ((await redis.evalsha(take, 3, key, queue, '{}:fence', token, leaseMs)) === 0) throw new Error(`${key} is taken`);
      try {
        return await work();
      } finally {
        await redis.evalsha(giveBack, 2, key, queue, token);
      }
    },
  };
}

export const forms = {
  plain: open,
  fenced: openFenced,
  'auto-pipelining': (url, settings) => open(url, { ...settings, enableAutoPipelining: true }),
};
