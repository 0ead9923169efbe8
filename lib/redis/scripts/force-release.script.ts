import { LuaScript } from '../lua-script.js';

/** For operators: frees a key whoever holds it. */
export const FORCE_RELEASE = new LuaScript<boolean>({
  source: `
-- KEYS[1]   the key
-- RETURNS   1 it was held and is free now, 0 nobody held it
return redis.call('DEL', KEYS[1])
`,
  decode: (reply) => Number(reply) === 1,
});
