import type { Command, Redis } from 'ioredis';
import type { Call } from './plain-call.js';

/** Receives the outcome of a command. */
export interface Outcome {
  replied(call: Call, reply: unknown): void;
  failed(call: Call, error: Error): void;
}

/** Sent when ioredis resends a command whose caller has given up. */
const PING = '*1\r\n$4\r\nPING\r\n';

/**
 * A command that encodes itself. It has what ioredis needs of a `Command` and nothing more: theirs spends a promise,
 * a few closures and a pass over all arguments on each command, which is a tenth of an uncontended lock
 * (docs/decisions/0006).
 */
export class ScriptCommand {
  readonly name = 'evalsha';
  readonly args: readonly string[] = [];
  /** ioredis sets and reads these. */
  promise: Promise<unknown> | undefined = undefined;
  isResolved = false;
  isTraced = true;
  readonly #call: Call;
  readonly #outcome: Outcome;
  #settle: ((reply?: unknown) => void) | undefined;

  protected constructor(call: Call, outcome: Outcome) {
    this.#call = call;
    this.#outcome = outcome;
  }

  static send(redis: Redis, call: Call, outcome: Outcome): void {
    ScriptCommand.pass(redis, new ScriptCommand(call, outcome));
  }

  /**
   * Passes a command to a client. An app may have wrapped the `sendCommand` of its client: such a wrapper finds a
   * promise, which never rejects. If it throws all the same, the reply counts, if the command was sent before.
   */
  protected static pass(client: Pick<Redis, 'sendCommand'>, command: ScriptCommand): void {
    if (Object.hasOwn(client, 'sendCommand')) command.promise = new Promise((resolve) => (command.#settle = resolve));
    try {
      void client.sendCommand(command as unknown as Command);
    } catch (error) {
      if (!command.#call.sent) command.#outcome.failed(command.#call, error as Error);
    }
  }

  /** Encodes the command; ioredis calls it each time it sends the command. */
  toWritable(): string {
    return this.#call.settled ? PING : this.#call.encode();
  }

  // Bound, and not on the prototype: instrumentation detaches them and calls them alone.
  resolve = (reply: unknown): void => {
    this.isResolved = true;
    this.#settle?.(reply);
    this.#outcome.replied(this.#call, reply);
  };

  reject = (error: Error): void => {
    this.#settle?.();
    this.#outcome.failed(this.#call, error);
  };

  /** Does nothing: the replies of both RESP versions read alike. */
  setReplyContext(): void {}

  /** Does nothing: every call has a deadline of its own, whatever the client's `commandTimeout` is. */
  setTimeout(): void {}

  extractBlockingTimeout(): undefined {
    return undefined;
  }
}
