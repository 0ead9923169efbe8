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

interface ScriptCallParts {
  readonly script: LuaScript<unknown>;
  /** Encodes keys and arguments. `again`: it was sent before, maybe to another server. */
  readonly encode: (again: boolean) => ScriptArguments;
  readonly onReply: (reply: unknown) => void;
  readonly onError: (error: LockUnavailableError) => void;
}

/** One call of a script: sent as often as it takes, settled once. */
export class ScriptCall {
  startedAt = 0;
  #sent = false;
  #settled = false;
  readonly #parts: ScriptCallParts;

  constructor(parts: ScriptCallParts) {
    this.#parts = parts;
  }

  /** Whether it has left this process. */
  get sent(): boolean {
    return this.#sent;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /** The command as it goes over the wire now, naming the script by its SHA1 or bringing it along. */
  encode(withSource: boolean): string {
    const { script, encode } = this.#parts;
    const { text, keyCount, count } = encode(this.#sent);
    this.#sent = true;
    return `*${3 + count}\r\n${withSource ? script.bySource : script.bySha1}${bulk(keyCount)}${text}`;
  }

  succeed(reply: unknown): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#parts.onReply(reply);
  }

  fail(error: LockUnavailableError): void {
    if (this.#settled) return;
    this.#settled = true;
    this.#parts.onError(error);
  }
}
