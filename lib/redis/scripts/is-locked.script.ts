import { LuaScript } from '../lua-script.js';

export const IS_LOCKED = new LuaScript<boolean>({
  source: `
-- KEYS[1]   the key
-- RETURNS   1 somebody holds it, 0 nobody does
return redis.call('EXISTS', KEYS[1])
`,
  decode: (reply) => Number(reply) === 1,
});
