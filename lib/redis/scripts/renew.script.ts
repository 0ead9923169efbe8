import { LuaScript } from '../lua-script.js';
import { SHARED } from './locks/holders.lua.js';

/**
 * Pushes out the expiry of many keys, each only where it still holds the token named for it. Never brings one nearer: of two
 * renewals whose answers cross or get lost, the longer one holds. A key that holds something else stops nobody (`pcall`).
 * Of a shared key it pushes out the token's own end, and that of the key as far as that needs.
 */
export const RENEW = new LuaScript<readonly number[]>({
  source: `
-- KEYS[i]            a key
-- ARGV[2i-1], [2i]   its token, its lease in ms
-- RETURNS            which i are not the token's any more
local call, pcall, gone, now = redis.call, redis.pcall, {}, nil

local function renewShared(key, token, lease)
  local holders = (string.find(key, '{[^}]+}') and key or '{' .. key .. '}') .. ':holders'
  if not now then
    local time = call('TIME')
    now = time[1] * 1000 + math.floor(time[2] / 1000)
  end
  local ends = pcall('ZSCORE', holders, token)
  -- While a slot moves to another node, that is elsewhere for a moment: not known is not lost.
  if type(ends) == 'table' and not string.find(ends.err, 'WRONGTYPE') then error(ends.err) end
  if type(ends) ~= 'string' or tonumber(ends) <= now then return false end
  if tonumber(ends) < now + lease then call('ZADD', holders, now + lease, token) end
  for _, name in ipairs({key, holders}) do
    if call('PTTL', name) < tonumber(lease) then call('PEXPIRE', name, lease) end
  end
  return true
end

for i = 1, #KEYS do
  local key, token, lease = KEYS[i], ARGV[2 * i - 1], ARGV[2 * i]
  local value = pcall('GET', key)
  if value == token then
    if call('PTTL', key) < tonumber(lease) then call('PEXPIRE', key, lease) end
  elseif type(value) ~= 'string' or string.sub(value, 1, ${SHARED.length}) ~= '${SHARED}' or not renewShared(key, token, lease) then
    gone[#gone + 1] = i
  end
end
return gone
`,
  decode: (reply) => (reply as unknown[]).map(Number),
});
