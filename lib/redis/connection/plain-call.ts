import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { bulks } from '../wire/resp.js';

/** Something that is sent as often as it takes, and settled once. */
export interface Call {
  startedAt: number;
  /** Where in a cluster it has to go. */
  readonly slot?: number | undefined;
  /** In a cluster: whether a TRYAGAIN is its answer, rather than a reason to send it again. */
  readonly isImpatient?: boolean;
  readonly sent: boolean;
  readonly settled: boolean;
  /** The command as it goes over the wire now. `withSource`: a script is to be brought along. */
  encode(withSource: boolean): string;
  succeed(reply: unknown): void;
  fail(error: LockUnavailableError): void;
}

/** A command that is no script, with a promise for its reply. */
export class PlainCall implements Call {
  startedAt = 0;
  sent = false;
  settled = false;
  readonly promise: Promise<unknown>;
  readonly #text: string;
  #resolve!: (reply: unknown) => void;
  #reject!: (error: LockUnavailableError) => void;

  constructor(words: readonly (string | number)[]) {
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
