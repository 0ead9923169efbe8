import type { Command, Redis } from 'ioredis';

/** What a command says, and who hears what became of it. */
interface Sender {
  /** Called each time it is sent: a client may send it again by itself after a reconnect. */
  encode(): string;
  replied(reply: unknown): void;
  failed(error: Error): void;
}

/**
 * A command that encodes itself. It has what ioredis asks of a `Command` and nothing more: theirs spends a promise, a few
 * closures and a pass over all arguments on each command, which is a tenth of an uncontended lock (docs/decisions/0005).
 */
export class ScriptCommand {
  readonly name = 'evalsha';
  readonly args: readonly string[] = [];
  /** ioredis sets and reads these. */
  readonly promise = undefined;
  isResolved = false;
  isTraced = true;
  readonly #sender: Sender;

  private constructor(sender: Sender) {
    this.#sender = sender;
  }

  static send(redis: Redis, sender: Sender): void {
    void redis.sendCommand(new ScriptCommand(sender) as unknown as Command);
  }

  toWritable(): string {
    return this.#sender.encode();
  }

  resolve(reply: unknown): void {
    this.isResolved = true;
    this.#sender.replied(reply);
  }

  reject(error: Error): void {
    this.#sender.failed(error);
  }

  /** The RESP version changes nothing: we read both alike. */
  setReplyContext(): void {}

  /** Every call of ours has a deadline of its own, whatever the client's `commandTimeout` is. */
  setTimeout(): void {}

  extractBlockingTimeout(): undefined {
    return undefined;
  }
}
