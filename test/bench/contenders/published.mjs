import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';

const TAKE_OR_QUEUE = `
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', ARGV[2]) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0
`;
const HAND_OVER = `
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local nextOne = redis.call('LPOP', KEYS[2])
if not nextOne then return redis.call('DEL', KEYS[1]) end
redis.call('SET', KEYS[1], nextOne, 'PX', ARGV[2])
return redis.call('PUBLISH', string.match(nextOne, '^[^.]*'), nextOne)
`;

/**
 * A queue in Redis, and one subscription for each process: the least that such a hand-off costs. No fence, and nobody
 * looks whether the next one is still there.
 */
async function open(url, { leaseMs }) {
  const redis = new Redis(url);
  const ears = new Redis(url);
  const channel = randomUUID();
  const turns = new Map();
  let count = 0;
  redis.defineCommand('takeOrQueue', { numberOfKeys: 2, lua: TAKE_OR_QUEUE });
  redis.defineCommand('handOver', { numberOfKeys: 2, lua: HAND_OVER });
  ears.on('message', (_channel, token) => turns.get(token)());
  await ears.subscribe(channel);
  return {
    async section(key, work) {
      const token = `${channel}.${++count}`;
      const turn = new Promise((resolve) => turns.set(token, resolve));
      if (!(await redis.takeOrQueue(key, `{${key}}:queue`, token, leaseMs))) await turn;
      turns.delete(token);
      try {
        return await work();
      } finally {
        await redis.handOver(key, `{${key}}:queue`, token, leaseMs);
      }
    },
  };
}

export const forms = { PUBLISH: open };
