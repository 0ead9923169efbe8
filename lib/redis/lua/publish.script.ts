import { LuaScript } from './lua-script.js';
import { PUBLISH_SOURCE } from './sources.generated.js';

/** Tells a process something on its wake channel. */
export const PUBLISH = new LuaScript<number>({
  source: PUBLISH_SOURCE,
  decode: Number,
});
