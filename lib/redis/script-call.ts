import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { LuaScript } from './lua-script.js';
import { bulk } from './resp.js';

/** Keys and arguments of a script call, encoded. */
export interface ScriptArguments {
  readonly text: string;
  readonly keyCount: number;
  /** How many keys and arguments the text holds. */
  readonly count: number;
}

/** One call of a script: encoded once, sent as often as it takes, settled once. */
export class ScriptCall {
  startedAt = 0;
  /** How often the connection had dropped when it was first sent; undefined while it has not left this process. */
  sentAfterDrops: number | undefined;
  #settled = false;
  readonly #script: LuaScript<unknown>;
  readonly #arguments: ScriptArguments;
  readonly #onReply: (reply: unknown) => void;
  readonly #onError: (error: LockUnavailableError) => void;

  constructor(script: LuaScript<unknown>, args: ScriptArguments, onReply: (reply: unknown) => void, onError: (error: LockUnavailableError) => void) {
    this.#script = script;
    this.#arguments = args;
    this.#onReply = onReply;
    this.#onError = onError;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** The command as it goes over the wire, naming the script by its SHA1 or bringing it along. */
  encode(withSource: boolean): string {
    const { text, keyCount, count } = this.#arguments;
    return `*${3 + count}\r\n${withSource ? this.#script.bySource : this.#script.bySha1}${bulk(keyCount)}${text}`;
  }

  succeed(reply: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#onReply(reply);
  }

  fail(error: LockUnavailableError): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#onError(error);
  }
}
