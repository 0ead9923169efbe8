import { now } from '../clock/deadline.js';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { Connection } from './redis-connection.js';

/**
 * Whether a server may have forgotten locks: it was started less than the longest lease ago. Until that time has passed, a lock
 * that it forgot may still be held, so it must not grant one.
 */
export class Amnesia {
  readonly #redis: Connection;
  #longestLeaseMs: number;
  /** When the server was started at the latest, on our clock. */
  #startedAt = 0;
  /** How often the connection had dropped when the server told: after the next time it may be another one, or have been restarted. */
  #toldAfterDrops = -1;
  #asking: Promise<void> | undefined;

  /** @param longestLeaseMs the longest that is known of so far */
  constructor(redis: Connection, longestLeaseMs: number) {
    this.#redis = redis;
    this.#longestLeaseMs = longestLeaseMs;
  }

  /** Notes a lease that is asked for. */
  note(leaseMs: number): void {
    this.#longestLeaseMs = Math.max(this.#longestLeaseMs, leaseMs);
  }

  /** Whether it is known that the server has forgotten nothing. */
  get isOver(): boolean {
    return this.#toldAfterDrops === this.#redis.drops && this.#leftMs <= 0;
  }

  /** @throws LockUnavailableError when the server must not grant locks yet, or can't be asked */
  async check(): Promise<void> {
    if (this.#toldAfterDrops !== this.#redis.drops) await (this.#asking ??= this.#ask());
    const leftMs = this.#leftMs;
    if (leftMs <= 0) return;
    throw new LockUnavailableError(
      `Redis at ${this.#redis.server} was started a moment ago and may have forgotten locks that are still held: it grants none for another ${Math.ceil(leftMs / 1000)} s, ` +
        `until the longest lease (${this.#longestLeaseMs} ms) has passed.`,
    );
  }

  get #leftMs(): number {
    return this.#startedAt + this.#longestLeaseMs - now();
  }

  async #ask(): Promise<void> {
    try {
      const info = await this.#redis.command('INFO', 'server');
      const uptime = /^uptime_in_seconds:(\d+)/m.exec(String(info))?.[1];
      if (uptime === undefined) throw new LockUnavailableError(`Redis at ${this.#redis.server} does not tell when it was started (INFO), so it can't be trusted to know all locks.`);
      // The difference of two times in whole seconds: it can be almost one more than has really passed.
      this.#startedAt = now() - (Number(uptime) - 1) * 1000;
      this.#toldAfterDrops = this.#redis.drops;
    } finally {
      this.#asking = undefined;
    }
  }
}
