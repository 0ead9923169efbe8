import { createHash } from 'node:crypto';

interface LuaScriptParts<Reply> {
  readonly source: string;
  readonly decode: (reply: unknown) => Reply;
}

/** A Lua script and how its reply reads. Nobody above sees what Redis really said. */
export class LuaScript<Reply> {
  readonly source: string;
  readonly sha1: string;
  readonly decode: (reply: unknown) => Reply;

  constructor({ source, decode }: LuaScriptParts<Reply>) {
    this.source = source;
    this.sha1 = createHash('sha1').update(source).digest('hex');
    this.decode = decode;
  }
}
