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
  /** When the server was started, on our clock; unknown until it has told. */
  #startedAt: number | undefined;
  #asking: Promise<number> | undefined;

  /** @param longestLeaseMs the longest that is known of so far */
  constructor(redis: Connection, longestLeaseMs: number) {
    this.#redis = redis;
    this.#longestLeaseMs = longestLeaseMs;
  }

  /** A connection was made: it may be to another server than before, or to one that was restarted. */
  forget(): void {
    this.#startedAt = undefined;
    this.#asking = undefined;
  }

  /** Notes a lease that is asked for. */
  note(leaseMs: number): void {
    this.#longestLeaseMs = Math.max(this.#longestLeaseMs, leaseMs);
  }

  /** @throws LockUnavailableError when the server must not grant locks yet, or can't be asked */
  async check(): Promise<void> {
    const startedAt = this.#startedAt ?? (await (this.#asking ??= this.#ask()));
    const leftMs = startedAt + this.#longestLeaseMs - now();
    if (leftMs <= 0) return;
    throw new LockUnavailableError(
      `Redis at ${this.#redis.server} was started a moment ago and may have forgotten locks that are still held: it grants none for another ${Math.ceil(leftMs / 1000)} s, ` +
        `until the longest lease (${this.#longestLeaseMs} ms) has passed.`,
    );
  }

  async #ask(): Promise<number> {
    try {
      const info = await this.#redis.command('INFO', 'server');
      const uptime = /^uptime_in_seconds:(\d+)/m.exec(String(info))?.[1];
      if (uptime === undefined) throw new LockUnavailableError(`Redis at ${this.#redis.server} does not tell when it was started (INFO), so it can't be trusted to know all locks.`);
      // It counts whole seconds, so it may have been started almost one later than it says.
      return (this.#startedAt = now() - Number(uptime) * 1000);
    } finally {
      this.#asking = undefined;
    }
  }
}
