import { createHash } from 'node:crypto';
import { bulk } from '../wire/resp.js';

interface LuaScriptParts<Reply> {
  readonly source: string;
  readonly decode: (reply: unknown) => Reply;
}

/** A Lua script, and how to read its reply. Nothing above sees the reply itself. */
export class LuaScript<Reply> {
  readonly source: string;
  readonly decode: (reply: unknown) => Reply;
  /** `EVALSHA sha1` and `EVAL source`, as sent over the wire. */
  readonly bySha1: string;
  readonly bySource: string;

  constructor({ source, decode }: LuaScriptParts<Reply>) {
    this.source = source;
    this.decode = decode;
    this.bySha1 = bulk('EVALSHA') + bulk(createHash('sha1').update(source).digest('hex'));
    this.bySource = bulk('EVAL') + bulk(source);
  }
}

/** Reads the reply of `PTTL` for a key that exists: -1 means that it has no expiry. */
export function timeToLive(reply: unknown): number {
  return Number(reply) === -1 ? Infinity : Number(reply);
}
