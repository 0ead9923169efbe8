import { createHash, randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

export const options = 'ioredis 6; lease 30 s; not renewed';

const scripted = (source) => ({ source, sha: createHash('sha1').update(source).digest('hex') });

const DELETE_IF_MINE = scripted(
  `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
);

const SET_IF_NOBODY_WAITS = scripted(`
if redis.call('EXISTS', KEYS[2]) == 1 or not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 0 end
return redis.call('INCR', KEYS[3])
`);
const DELETE_IF_NOBODY_WAITS = scripted(
  "if redis.call('EXISTS', KEYS[2]) == 0 and redis.call('GET', KEYS[1]) == ARGV[1] then " +
    "return redis.call('DEL', KEYS[1]) end return 0",
);

/** What a careful person writes by hand: two commands, and no waiting when the key is taken. */
const plain = {
  scripts: [DELETE_IF_MINE],
  take: (redis, key, token, leaseMs) => redis.set(key, token, 'PX', leaseMs, 'NX'),
  giveBack: (redis, key, token) => redis.evalsha(DELETE_IF_MINE.sha, 1, key, token),
};

/**
 * The same with a fence for each grant, and a look whether others wait: the least that can be asked of Redis for that.
 */
const fenced = {
  scripts: [SET_IF_NOBODY_WAITS, DELETE_IF_NOBODY_WAITS],
  take: (redis, key, token, leaseMs) =>
    redis.evalsha(SET_IF_NOBODY_WAITS.sha, 3, key, `{${key}}:queue`, '{}:fence', token, leaseMs),
  giveBack: (redis, key, token) => redis.evalsha(DELETE_IF_NOBODY_WAITS.sha, 2, key, `{${key}}:queue`, token),
};

async function open({ scripts, take, giveBack }, url, { leaseMs, ...clientOptions }) {
  const redis = new Redis(url, clientOptions);
  for (const { source } of scripts) await redis.script('LOAD', source);
  return {
    async section(key, work) {
      const token = randomUUID();
      if (!(await take(redis, key, token, leaseMs))) throw new Error(`${key} is taken`);
      try {
        return await work();
      } finally {
        await giveBack(redis, key, token);
      }
    },
  };
}

export const forms = {
  plain: (url, settings) => open(plain, url, settings),
  fenced: (url, settings) => open(fenced, url, settings),
  'auto-pipelining': (url, settings) => open(plain, url, { ...settings, enableAutoPipelining: true }),
};
