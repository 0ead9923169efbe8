import { createHash } from 'node:crypto';
import { LuaScript } from './lua-script.js';
import { HOLDERS_OF_SOURCE } from './sources.generated.js';

/** Names the holders of a key: an exclusive one by the SHA1 of its token, those who share it by their tokens. */
export const HOLDERS_OF = new LuaScript<readonly string[]>({
  source: HOLDERS_OF_SOURCE,
  decode: (reply) => (reply as (Buffer | string)[]).map(String),
});

/** Whether a holder that the script found is this token. */
export const isHolder = (found: string, token: string): boolean =>
  found === token || found === createHash('sha1').update(token).digest('hex');
