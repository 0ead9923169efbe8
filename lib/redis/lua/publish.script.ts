import { LuaScript } from './lua-script.js';
import { PUBLISH_SOURCE } from './sources.generated.js';

/** Sends a message to a process on its wake channel. */
export const PUBLISH = new LuaScript<number>({
  source: PUBLISH_SOURCE,
  decode: Number,
});
