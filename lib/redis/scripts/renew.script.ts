import { LuaScript } from '../lua-script.js';

/** Pushes out the expiry of many keys, each only where it still holds the token named for it. */
export const RENEW = new LuaScript<readonly boolean[]>({
  source: `
-- KEYS[i]            a key
-- ARGV[2i-1], [2i]   its token, its lease in ms
-- RETURNS            for each key 1 renewed, 0 not the token's
local renewed = {}
for i = 1, #KEYS do
  if redis.call('GET', KEYS[i]) == ARGV[2 * i - 1] then
    renewed[i] = redis.call('PEXPIRE', KEYS[i], ARGV[2 * i])
  else
    renewed[i] = 0
  end
end
return renewed
`,
  decode: (reply) => (reply as unknown[]).map((renewed) => Number(renewed) === 1),
});
