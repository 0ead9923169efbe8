import type { Command, Redis } from 'ioredis';

/** Hears what became of a command. */
interface Outcome {
  replied(reply: unknown): void;
  failed(error: Error): void;
}

/**
 * A command that is encoded already. It has what ioredis asks of a `Command` and nothing more: theirs spends a promise, a few
 * closures and a pass over all arguments on each command, which is a tenth of an uncontended lock (docs/decisions/0005).
 */
export class ScriptCommand {
  readonly name = 'evalsha';
  readonly args: readonly string[] = [];
  /** ioredis sets and reads these. */
  readonly promise = undefined;
  isResolved = false;
  isTraced = true;
  readonly #text: string;
  readonly #outcome: Outcome;

  private constructor(text: string, outcome: Outcome) {
    this.#text = text;
    this.#outcome = outcome;
  }

  static send(redis: Redis, text: string, outcome: Outcome): void {
    void redis.sendCommand(new ScriptCommand(text, outcome) as unknown as Command);
  }

  toWritable(): string {
    return this.#text;
  }

  resolve(reply: unknown): void {
    this.isResolved = true;
    this.#outcome.replied(reply);
  }

  reject(error: Error): void {
    this.#outcome.failed(error);
  }

  /** The RESP version changes nothing: we read both alike. */
  setReplyContext(): void {}

  /** Every call of ours has a deadline of its own, whatever the client's `commandTimeout` is. */
  setTimeout(): void {}

  extractBlockingTimeout(): undefined {
    return undefined;
  }
}
