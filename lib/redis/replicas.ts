import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { Connection } from './redis-connection.js';

/** Asks how many replicas have what was written on a connection: once for all that was sent in a tick. */
export class Replicas {
  readonly #redis: Connection;
  readonly #wanted: number;
  readonly #timeoutMs: number;
  #asking: Promise<number> | undefined;

  /** @param wanted waits until so many have it, or the time is over */
  constructor(redis: Connection, wanted: number, timeoutMs: number) {
    this.#redis = redis;
    this.#wanted = wanted;
    this.#timeoutMs = timeoutMs;
  }

  /**
   * How many have what has been sent until now.
   *
   * @param drops how often the connection had dropped before that was sent: `WAIT` knows only of its own connection
   * @throws LockUnavailableError
   */
  async having(drops: number): Promise<number> {
    const have = await (this.#asking ??= this.#ask());
    if (drops === this.#redis.drops) return have;
    throw new LockUnavailableError(`The connection to Redis at ${this.#redis.server} dropped before its replicas were known to have the lock.`);
  }

  async #ask(): Promise<number> {
    await Promise.resolve();
    this.#asking = undefined;
    return Number(await this.#redis.command('WAIT', this.#wanted, this.#timeoutMs));
  }
}
