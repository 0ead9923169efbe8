import { createHash } from 'node:crypto';
import { bulk } from '../wire/resp.js';

interface LuaScriptParts<Reply> {
  readonly source: string;
  readonly decode: (reply: unknown) => Reply;
}

/** A Lua script and how its reply reads. Nobody above sees what Redis really said. */
export class LuaScript<Reply> {
  readonly source: string;
  readonly decode: (reply: unknown) => Reply;
  /** `EVALSHA sha1` and `EVAL source` as they go over the wire. */
  readonly bySha1: string;
  readonly bySource: string;

  constructor({ source, decode }: LuaScriptParts<Reply>) {
    this.source = source;
    this.decode = decode;
    this.bySha1 = bulk('EVALSHA') + bulk(createHash('sha1').update(source).digest('hex'));
    this.bySource = bulk('EVAL') + bulk(source);
  }
}
