import type { Granted, Held } from '../../store/lock-store.js';
import { LuaScript } from '../lua-script.js';

/**
 * Takes all keys, or none. A key that holds our own token already is ours: the same command, sent twice, is granted twice.
 *
 * The fence is the server's time in µs, or the last fence plus one where that is larger: it grows even when the clock is set
 * back, and does not start again after FLUSHALL. The note of the last fence goes by itself a day after the last grant.
 */
export const ACQUIRE = new LuaScript<Granted | Held>({
  source: `
-- KEYS[1..n-1] the keys to lock
-- KEYS[n]      the last fence given
-- ARGV[1]      token
-- ARGV[2]      lease in ms
-- RETURNS      {1, fence} granted
--              {0, holder's token, what its lease still lasts in ms (-1: without end)} held
local count = #KEYS - 1
for i = 1, count do
  local holder = redis.call('GET', KEYS[i])
  if holder and holder ~= ARGV[1] then
    return {0, holder, redis.call('PTTL', KEYS[i])}
  end
end
for i = 1, count do
  redis.call('SET', KEYS[i], ARGV[1], 'PX', ARGV[2])
end
local time = redis.call('TIME')
local fence = time[1] * 1000000 + time[2]
local last = tonumber(redis.call('GET', KEYS[#KEYS]) or 0)
if fence <= last then
  fence = last + 1
end
redis.call('SET', KEYS[#KEYS], string.format('%.0f', fence), 'PX', 86400000)
return {1, fence}
`,
  decode(reply) {
    const [granted, value, leaseLeftMs] = reply as [number, number | string, number?];
    if (Number(granted) === 1) return { granted: true, fence: Number(value) };
    return { granted: false, holder: String(value), leaseLeftMs: Number(leaseLeftMs) === -1 ? Infinity : Number(leaseLeftMs) };
  },
});
