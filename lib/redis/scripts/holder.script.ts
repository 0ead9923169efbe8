import { LuaScript } from '../lua-script.js';

/** Who holds a key: as a hash, because another tool may have written anything there. */
export const HOLDER = new LuaScript<string | undefined>({
  source: `
-- KEYS[1]   the key
-- RETURNS   the SHA1 of the token of who holds it, or nothing
local token = redis.call('GET', KEYS[1])
return token and redis.sha1hex(token)
`,
  decode: (reply) => (reply === null ? undefined : (reply as Buffer | string).toString()),
});
