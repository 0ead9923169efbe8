import { LuaScript } from '../lua-script.js';

/** For how long a server has been the master, in ms, as far as anybody who asked has seen: it does not tell by itself. */
export const REIGN = new LuaScript<number>({
  source: `
-- KEYS[1]   the note of who was first seen as the master, and when
-- ARGV[1]   what the server calls its history: another one since it became the master
-- RETURNS   ms since it was first seen
local call, time = redis.call, redis.call('TIME')
local now = time[1] * 1000 + math.floor(time[2] / 1000)
local history, since = string.match(call('GET', KEYS[1]) or '', '^(%S+) (%d+)$')
if history == ARGV[1] then return now - since end
call('SET', KEYS[1], string.format('%s %.0f', ARGV[1], now))
return 0
`,
  decode: Number,
});
