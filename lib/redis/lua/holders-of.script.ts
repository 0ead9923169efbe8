import { createHash } from 'node:crypto';
import { LuaScript } from './lua-script.js';

import { HOLDERS_OF_SOURCE } from './sources.generated.js';

/**
 * Names who holds a key, so that just they can be released: an exclusive holder as a hash, because another tool may have written
 * anything there; those who share it by their tokens.
 */
export const HOLDERS_OF = new LuaScript<readonly string[]>({
  source: HOLDERS_OF_SOURCE,
  decode: (reply) => (reply as (Buffer | string)[]).map(String),
});

/** Whether what the script answered means this token. */
export const isHolder = (found: string, token: string): boolean =>
  found === token || found === createHash('sha1').update(token).digest('hex');
