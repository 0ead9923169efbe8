import type { Redis } from 'ioredis';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import { CommandDeadline } from './command-deadline.js';
import type { LuaScript } from './lua-script.js';
import type { RedisClient } from './redis-client.js';

/** The command never left this process, so it can't have changed anything. */
export class NotSentError extends LockUnavailableError {}

/** Hears about outages: once when one begins, once when it is over. */
export interface OutageLog {
  down(server: string, cause: Error): void;
  up(server: string): void;
}

/** Runs scripts on one Redis. Nothing it returns stays pending longer than the command time-out. */
export class RedisConnection {
  readonly #redis: Redis;
  readonly #borrowed: boolean;
  readonly #deadline: CommandDeadline;
  readonly #log: OutageLog;
  readonly #onReady: () => void;
  readonly #whenReady = new Set<() => void>();
  #lastError: Error | undefined;
  #drops = 0;

  constructor({ redis, borrowed }: RedisClient, commandTimeoutMs: number, log: OutageLog, onReady: () => void) {
    this.#redis = redis;
    this.#borrowed = borrowed;
    this.#deadline = new CommandDeadline(commandTimeoutMs);
    this.#log = log;
    this.#onReady = onReady;
    redis.on('ready', this.#becameReady);
    redis.on('close', this.#dropped);
    // A borrowed client's errors are the app's own to hear.
    if (!borrowed) redis.on('error', this.#failed);
  }

  /** How often the connection has dropped. If it changed while a command ran, the command may have run twice. */
  get drops(): number {
    return this.#drops;
  }

  /** Begins to connect, if nobody has. */
  open(): void {
    if (this.#redis.status === 'wait') this.#redis.connect().catch(() => undefined);
  }

  /**
   * Runs a script and decodes its reply.
   *
   * @throws NotSentError when the server did not get it, LockUnavailableError when it may have run or was refused
   */
  async run<Reply>(script: LuaScript<Reply>, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    const atMs = this.#deadline.start();
    if (this.#redis.status !== 'ready') await this.#untilReady(atMs);
    try {
      return script.decode(await this.#call(atMs, this.#redis.evalsha(script.sha1, keys.length, ...keys, ...args)));
    } catch (error) {
      if (!isNoScript(error)) throw this.#refused(error);
    }
    try {
      return script.decode(await this.#call(atMs, this.#redis.eval(script.source, keys.length, ...keys, ...args)));
    } catch (error) {
      throw this.#refused(error);
    }
  }

  /** Lets go of the client: closes ours, leaves a borrowed one as it was. */
  close(): void {
    this.#redis.off('ready', this.#becameReady);
    this.#redis.off('close', this.#dropped);
    if (!this.#borrowed) this.#redis.disconnect();
  }

  #call<T>(atMs: number, command: Promise<T>): Promise<T> {
    return this.#deadline.race(atMs, command, () => this.#noAnswer());
  }

  async #untilReady(atMs: number): Promise<void> {
    if (this.#redis.status === 'end') throw new NotSentError('The connection to Redis has been closed, so the lock can\'t be asked for.', this.#lastError);
    this.open();
    let wake: () => void;
    const ready = new Promise<void>((resolve) => this.#whenReady.add((wake = resolve)));
    await this.#deadline.race(atMs, ready, () => this.#unreachable()).finally(() => this.#whenReady.delete(wake));
  }

  readonly #becameReady = (): void => {
    for (const wake of this.#whenReady) wake();
    if (this.#lastError) this.#log.up(this.#server);
    this.#lastError = undefined;
    this.#onReady();
  };

  readonly #dropped = (): void => {
    this.#drops++;
  };

  readonly #failed = (error: Error): void => {
    if (!this.#lastError) this.#log.down(this.#server, error);
    this.#lastError = error;
  };

  get #server(): string {
    const { host, port, path } = this.#redis.options;
    return path ?? `${host}:${port}`;
  }

  #unreachable(): NotSentError {
    return new NotSentError(
      `Redis at ${this.#server} can't be reached (waited ${this.#deadline.timeoutMs} ms). Check that it runs and that "connection" is right.`,
      this.#lastError,
    );
  }

  #noAnswer(): LockUnavailableError {
    return new LockUnavailableError(
      `Redis at ${this.#server} did not answer within ${this.#deadline.timeoutMs} ms. Look at its load and the network, or raise "commandTimeout".`,
      this.#lastError,
    );
  }

  #refused(error: unknown): LockUnavailableError {
    if (error instanceof LockUnavailableError) return error;
    const said = error instanceof Error ? error.message : String(error);
    if (said.includes('WRONGTYPE')) {
      return new LockUnavailableError('The key of this lock holds something in Redis that is not a lock. Another program uses the same name: change "keyPrefix".', error);
    }
    return new LockUnavailableError(`Redis at ${this.#server} did not do it: ${said}`, error);
  }
}

function isNoScript(error: unknown): boolean {
  return error instanceof Error && error.message.startsWith('NOSCRIPT');
}
