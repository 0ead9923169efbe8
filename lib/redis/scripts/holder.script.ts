import { LuaScript } from '../lua-script.js';

export const HOLDER = new LuaScript<string | undefined>({
  source: `
-- KEYS[1]   the key
-- RETURNS   the token of who holds it, or nothing
return redis.call('GET', KEYS[1])
`,
  decode: (reply) => (reply === null ? undefined : String(reply)),
});
