import { createHash } from 'node:crypto';
import { LuaScript } from '../lua-script.js';
import { SHARED } from './locks/holders.lua.js';

/**
 * Names who holds a key, so that just they can be released: an exclusive holder as a hash, because another tool may have written
 * anything there; those who share it by their tokens.
 */
export const HOLDERS_OF = new LuaScript<readonly string[]>({
  source: `
-- KEYS[1], KEYS[2]   the key, its queue
-- RETURNS            the SHA1 of the token of who holds it, or the tokens of all who share it
local value = redis.call('GET', KEYS[1])
if not value then return {} end
if string.sub(value, 1, ${SHARED.length}) ~= '${SHARED}' then return {redis.sha1hex(value)} end
local time = redis.call('TIME')
return redis.call('ZRANGEBYSCORE', (string.gsub(KEYS[2], 'queue$', 'holders')), '(' .. time[1] * 1000 + math.floor(time[2] / 1000), '+inf')
`,
  decode: (reply) => (reply as (Buffer | string)[]).map(String),
});

/** Whether what the script answered means this token. */
export const isHolder = (found: string, token: string): boolean =>
  found === token || found === createHash('sha1').update(token).digest('hex');
