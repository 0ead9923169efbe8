import { LuaScript } from '../lua-script.js';

/**
 * Pushes out the expiry of many keys, each only where it still holds the token named for it. Never brings one nearer: of two
 * renewals whose answers cross or get lost, the longer one holds. A key that holds something else stops nobody (`pcall`).
 */
export const RENEW = new LuaScript<readonly number[]>({
  source: `
-- KEYS[i]            a key
-- ARGV[2i-1], [2i]   its token, its lease in ms
-- RETURNS            which i are not the token's any more
local gone = {}
for i = 1, #KEYS do
  if redis.pcall('GET', KEYS[i]) ~= ARGV[2 * i - 1] then
    gone[#gone + 1] = i
  elseif redis.call('PTTL', KEYS[i]) < tonumber(ARGV[2 * i]) then
    redis.call('PEXPIRE', KEYS[i], ARGV[2 * i])
  end
end
return gone
`,
  decode: (reply) => (reply as unknown[]).map(Number),
});
