import { setImmediate } from 'node:timers/promises';
import type { Redis } from 'ioredis';
import { now } from '../clock/deadline.js';
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
   * Runs a script and decodes its reply. When the connection drops meanwhile, sends it again as soon as there is a new one:
   * every script of ours may run twice.
   *
   * @throws NotSentError when the server did not get it, LockUnavailableError when it may have run or was refused
   */
  async run<Reply>(script: LuaScript<Reply>, keys: readonly string[], args: readonly (string | number)[]): Promise<Reply> {
    const atMs = this.#deadline.start();
    for (let sent = false; ; ) {
      if (this.#redis.status !== 'ready') await this.#untilReady(atMs, sent);
      const drops = this.#drops;
      try {
        return script.decode(await this.#evaluate(script, keys, args, atMs));
      } catch (error) {
        if (error instanceof LockUnavailableError) throw error;
        if (!this.#isDrop(error, drops)) throw this.#refused(error);
        sent = true;
        // The client notices a broken socket one turn of the event loop later; before that it still says "ready".
        await setImmediate();
        if (now() >= atMs) throw this.#noAnswer();
      }
    }
  }

  /** Lets go of the client: closes ours, leaves a borrowed one as it was. */
  close(): void {
    this.#redis.off('ready', this.#becameReady);
    this.#redis.off('close', this.#dropped);
    if (!this.#borrowed) this.#redis.disconnect();
  }

  async #evaluate(script: LuaScript<unknown>, keys: readonly string[], args: readonly (string | number)[], atMs: number): Promise<unknown> {
    const noAnswer = () => this.#noAnswer();
    try {
      return await this.#deadline.race(atMs, this.#redis.evalsha(script.sha1, keys.length, ...keys, ...args), noAnswer);
    } catch (error) {
      if (!(error instanceof Error) || !error.message.startsWith('NOSCRIPT')) throw error;
      return this.#deadline.race(atMs, this.#redis.eval(script.source, keys.length, ...keys, ...args), noAnswer);
    }
  }

  /** Whether the connection failed, not the command. */
  #isDrop(error: unknown, drops: number): boolean {
    return drops !== this.#drops || (error instanceof Error && error.message.includes('enableOfflineQueue'));
  }

  async #untilReady(atMs: number, sent: boolean): Promise<void> {
    if (this.#redis.status === 'end') throw this.#unreachable('the connection has been closed', sent);
    this.open();
    let wake: () => void;
    const ready = new Promise<void>((resolve) => this.#whenReady.add((wake = resolve)));
    const tooLate = () => this.#unreachable(`waited ${this.#deadline.timeoutMs} ms`, sent);
    await this.#deadline.race(atMs, ready, tooLate).finally(() => this.#whenReady.delete(wake));
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
    const { host, port, path, sentinels, name } = this.#redis.options;
    if (sentinels) return `master "${name}" behind Sentinel`;
    return path ?? `${host}:${port}`;
  }

  #unreachable(why: string, sent: boolean): LockUnavailableError {
    const message = `Redis at ${this.#server} can't be reached (${why}). Check that it runs and that "connection" is right.`;
    return sent ? new LockUnavailableError(message, this.#lastError) : new NotSentError(message, this.#lastError);
  }

  #noAnswer(): LockUnavailableError {
    return new LockUnavailableError(
      `Redis at ${this.#server} did not answer within ${this.#deadline.timeoutMs} ms. Look at its load and the network, or raise "commandTimeout".`,
      this.#lastError,
    );
  }

  #refused(error: unknown): LockUnavailableError {
    const said = error instanceof Error ? error.message : String(error);
    if (said.includes('WRONGTYPE')) {
      return new LockUnavailableError('The key of this lock holds something in Redis that is not a lock. Another program uses the same name: change "keyPrefix".', error);
    }
    return new LockUnavailableError(`Redis at ${this.#server} did not do it: ${said}`, error);
  }
}
