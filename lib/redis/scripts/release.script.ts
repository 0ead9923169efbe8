import { LuaScript } from '../lua-script.js';

/** Frees keys, each only where it still holds the token: never a lock that is someone else's by now. */
export const RELEASE = new LuaScript<number>({
  source: `
-- KEYS[i]   the keys
-- ARGV[1]   token
-- RETURNS   how many keys were the token's, and are free now
local freed = 0
for i = 1, #KEYS do
  if redis.pcall('GET', KEYS[i]) == ARGV[1] then
    freed = freed + redis.call('DEL', KEYS[i])
  end
end
return freed
`,
  decode: Number,
});
