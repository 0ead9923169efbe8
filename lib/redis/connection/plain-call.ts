import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { bulks } from '../wire/resp.js';

/** A command or script that is sent as often as necessary, and settled once. */
export interface Call {
  startedAt: number;
  stalls: number;
  /** The slot of a cluster that it must be sent to. */
  readonly slot?: number | undefined;
  /** In a cluster: whether it fails with a TRYAGAIN, instead of being sent again. */
  readonly isImpatient?: boolean;
  readonly sent: boolean;
  /** Whether a server has said that it does not know the script: then it is sent with its source. */
  needsSource?: boolean;
  readonly settled: boolean;
  /** Encodes the command for the wire. */
  encode(): string;
  succeed(reply: unknown): void;
  fail(error: LockUnavailableError): void;
}

/**
 * Makes a call that gets a reply only where scripts run. `CLIENT PAUSE` holds it up as it does the scripts of locks; a
 * `PING` would get through.
 */
export const scriptProbe = (): PlainCall => new PlainCall(['EVAL', 'return 1', 0]);

/** A call of a command that is no script, with a promise for its reply. */
export class PlainCall implements Call {
  startedAt = 0;
  stalls = 0;
  sent = false;
  settled = false;
  readonly slot: number | undefined;
  readonly promise: Promise<unknown>;
  readonly #text: string;
  #resolve!: (reply: unknown) => void;
  #reject!: (error: LockUnavailableError) => void;

  /** @param slot in a cluster, the slot whose master is to run it; by default any node is */
  constructor(words: readonly (string | number)[], slot?: number) {
    this.slot = slot;
    this.#text = `*${words.length}\r\n${bulks(words)}`;
    this.promise = new Promise((resolve, reject) => {
      this.#resolve = resolve;
      this.#reject = reject;
    });
  }

  encode(): string {
    this.sent = true;
    return this.#text;
  }

  succeed(reply: unknown): void {
    this.settled = true;
    this.#resolve(reply);
  }

  fail(error: LockUnavailableError): void {
    this.settled = true;
    this.#reject(error);
  }
}
