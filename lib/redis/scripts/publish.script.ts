import { LuaScript } from '../lua-script.js';

/** Tells a process something on its wake channel. */
export const PUBLISH = new LuaScript<number>({
  source: `
-- ARGV[1], [2]   a channel, a message
-- RETURNS        how many heard it
return redis.call('PUBLISH', ARGV[1], ARGV[2])
`,
  decode: Number,
});
