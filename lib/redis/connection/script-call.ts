import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { LuaScript } from '../lua/lua-script.js';
import type { Call } from './plain-call.js';
import { bulkCount, bulks } from '../wire/resp.js';

/** The encoded keys and arguments of a script call. */
export interface ScriptArguments {
  readonly text: string;
  readonly keyCount: number;
  /** How many keys and arguments the text holds. */
  readonly count: number;
}

/** One call of a script: sent as often as necessary, settled once. */
export abstract class ScriptCall implements Call {
  startedAt = 0;
  stalls = 0;
  needsSource = false;
  readonly #script: LuaScript<unknown>;
  #timesSent = 0;
  #settled = false;
  #hasFailed = false;

  constructor(script: LuaScript<unknown>) {
    this.#script = script;
  }

  /** Whether it has left this process. */
  get sent(): boolean {
    return this.#timesSent > 0;
  }

  get settled(): boolean {
    return this.#settled;
  }

  /**
   * Encodes the command for the wire, with the SHA1 of the script or with its source. With the source, too, when it is
   * sent for the third time: a lent client that connects again for each error hears of no script that is missing.
   */
  encode(): string {
    const { text, keyCount, count } = this.encodeArguments(this.sent);
    const { bySource, bySha1 } = this.#script;
    const isThird = ++this.#timesSent === 3;
    return `*${3 + count}\r\n${this.needsSource || isThird ? bySource : bySha1}${bulkCount(keyCount)}${text}`;
  }

  succeed(reply: unknown): void {
    if (this.#hasFailed) return this.onLateReply();
    if (this.#settled) return;
    this.#settled = true;
    this.onReply(reply);
  }

  fail(error: LockUnavailableError): void {
    if (this.#settled) return;
    this.#settled = this.#hasFailed = true;
    this.onError(error);
  }

  /** @param resent whether it was sent before, maybe to another server */
  protected abstract encodeArguments(resent: boolean): ScriptArguments;
  protected abstract onReply(reply: unknown): void;
  protected abstract onError(error: LockUnavailableError): void;

  /** Notes that the server has replied after the call failed. */
  protected onLateReply(): void {}
}

/** Makes the error of a call that the server refused. */
interface Refuser {
  refused(error: Error): LockUnavailableError;
}

/** A call with a promise for its decoded reply. */
export class AwaitedCall<Reply> extends ScriptCall {
  slot: number | undefined;
  isImpatient = false;
  readonly promise: Promise<Reply>;
  readonly #arguments: ScriptArguments;
  #resolve!: (reply: unknown) => void;
  #reject!: (error: Error) => void;

  constructor(script: LuaScript<Reply>, keys: readonly string[], args: readonly (string | number)[], refuser: Refuser) {
    super(script);
    this.#arguments = { text: bulks(keys) + bulks(args), keyCount: keys.length, count: keys.length + args.length };
    this.promise = new Promise((resolve, reject) => {
      this.#reject = reject;
      this.#resolve = (reply) => {
        try {
          resolve(script.decode(reply));
        } catch (error) {
          reject(refuser.refused(error as Error));
        }
      };
    });
  }

  protected encodeArguments(): ScriptArguments {
    return this.#arguments;
  }

  protected onReply(reply: unknown): void {
    this.#resolve(reply);
  }

  protected onError(error: LockUnavailableError): void {
    this.#reject(error);
  }
}
