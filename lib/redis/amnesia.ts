import { now } from '../clock/deadline.js';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { Connection } from './redis-connection.js';
import { REIGN } from './scripts/reign.script.js';

/** How long an old master may go on to be followed after the new one is named, in ms. */
const OVERLAP_MS = 1000;

/** The second history of a server that has always been the master since it was started. */
const NONE = /^0*$/;

/** Since when the server at the other end of a connection has known all locks. */
interface Memory {
  /** How often the connection had dropped: after the next time it may be another server, or one that was restarted. */
  readonly drops: number;
  /** On our clock, in ms. */
  readonly since: number;
  readonly why: string;
}

/**
 * Whether a server may not know all locks: it was started less than the longest lease ago, and has forgotten them; or it became the
 * master since, and has not heard of those that the old one gave last. Until that time has passed, such a lock may still be
 * held, so it must not grant one.
 */
export class Amnesia {
  readonly #redis: Connection;
  readonly #note: string;
  #longestLeaseMs: number;
  #memory: Memory | undefined;
  #asking: Promise<Memory> | undefined;

  /**
   * @param note the key that says since when a server has been the master
   * @param longestLeaseMs the longest that is known of so far
   */
  constructor(redis: Connection, note: string, longestLeaseMs: number) {
    this.#redis = redis;
    this.#note = note;
    this.#longestLeaseMs = longestLeaseMs;
  }

  /** Notes a lease that is asked for. */
  note(leaseMs: number): void {
    this.#longestLeaseMs = Math.max(this.#longestLeaseMs, leaseMs);
  }

  /**
   * Answers how often the connection had dropped, for this is true only until it does so again.
   *
   * @throws LockUnavailableError when the server must not grant locks yet, or can't be asked
   */
  async check(): Promise<number> {
    if (this.#memory?.drops !== this.#redis.drops) this.#memory = await (this.#asking ??= this.#ask());
    const { drops, since, why } = this.#memory;
    const leftMs = since + this.#longestLeaseMs - now();
    if (leftMs <= 0) return drops;
    throw new LockUnavailableError(
      `Redis at ${this.#redis.server} ${why} locks that are still held: it grants none for another ${Math.ceil(leftMs / 1000)} s, ` +
        `until the longest lease (${this.#longestLeaseMs} ms) has passed.`,
    );
  }

  /** Should the connection drop meanwhile, the answer counts for the one before, so for none. */
  async #ask(): Promise<Memory> {
    const { drops } = this.#redis;
    try {
      const info = String(await this.#redis.command('INFO'));
      const read = (field: string) => new RegExp(`^${field}:(\\w+)`, 'm').exec(info)?.[1];
      const [uptime, history, before] = [read('uptime_in_seconds'), read('master_replid'), read('master_replid2')];
      if (uptime === undefined || history === undefined || before === undefined) {
        throw new LockUnavailableError(`Redis at ${this.#redis.server} does not tell when it was started, and became the master (INFO), so it can't be trusted to know all locks.`);
      }
      // It counts whole seconds, so it may have been started almost one later than it says.
      if (NONE.test(before)) return { drops, since: now() - Number(uptime) * 1000, why: 'was started a moment ago and may have forgotten' };
      const askedAt = now();
      const reignMs = await this.#redis.run(REIGN, [this.#note], [history]);
      return { drops, since: askedAt - reignMs + OVERLAP_MS, why: 'became the master a moment ago and may not have heard of' };
    } finally {
      this.#asking = undefined;
    }
  }
}
