import { now } from '../../clock/deadline.js';
import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { Connection } from '../connection/connection.js';

/** What a server tells about itself. */
interface Start {
  /** Names this one start of it; undefined where it is kept back. */
  readonly run: string | undefined;
  /** How long ago it was, as far as the server's own clock can be believed. */
  readonly agoMs: number;
}

/** What makes a guard. */
export interface RestartGuardOptions {
  /** The longest lease that is known of so far, in ms. */
  readonly longestLeaseMs: number;
  /** Whether all connections lead to one server, so that another start of it means that it was restarted, and is no other one that took over. */
  readonly isOneServer: boolean;
}

/**
 * Whether a server may have forgotten locks: it was started less than the longest lease ago. Until that time has passed, a lock
 * that it forgot may still be held, so it must not grant one.
 *
 * That is decided once for each start of the server (its `run_id`). Only what was granted before it was started can have been forgotten by
 * that: so a longer lease that is named later, even while the time is running, changes nothing. What is kept for some time after
 * the work (`atLeast`) does not count either: nobody is inside any more, so at worst a job runs again too soon.
 */
export class RestartGuard {
  readonly #redis: Connection;
  readonly #isOneServer: boolean;
  #longestLeaseMs: number;
  #run: string | undefined;
  /** When the server was last heard of in that run, on our clock. */
  #heardAt = -Infinity;
  /** For how long after that start nothing is granted; and until when that is, on our clock. */
  #guardMs = 0;
  #overAt = Infinity;
  /** How often the connection had dropped when the server told: after the next time it may be another one, or have been restarted. */
  #toldInEpoch = -1;
  #asking: Promise<void> | undefined;

  constructor(redis: Connection, { longestLeaseMs, isOneServer }: RestartGuardOptions) {
    this.#redis = redis;
    this.#longestLeaseMs = longestLeaseMs;
    this.#isOneServer = isOneServer;
  }

  /** Notes a lease that is asked for. */
  note(leaseMs: number): void {
    this.#longestLeaseMs = Math.max(this.#longestLeaseMs, leaseMs);
  }

  /**
   * Notes that the server has answered something.
   *
   * @param drops how often the connection had dropped before it was asked
   */
  heard(epoch: number): void {
    if (epoch === this.#toldInEpoch && epoch === this.#redis.epoch) this.#heardAt = now();
  }

  /** Whether it is known that the server has forgotten nothing. */
  get isOver(): boolean {
    return this.#toldInEpoch === this.#redis.epoch && now() >= this.#overAt;
  }

  /** @throws LockUnavailableError when the server must not grant locks yet, or can't be asked */
  async check(): Promise<void> {
    if (this.#toldInEpoch !== this.#redis.epoch) await (this.#asking ??= this.#ask());
    const leftMs = this.#overAt - now();
    if (leftMs <= 0) return;
    throw new LockUnavailableError(
      `Redis at ${this.#redis.server} was started a moment ago and may have forgotten locks that are still held: it grants none for another ${Math.ceil(leftMs / 1000)} s, ` +
        `until the longest lease (${this.#guardMs} ms) has passed.`,
    );
  }

  async #ask(): Promise<void> {
    try {
      const start = startOf(String(await this.#redis.command('INFO', 'server')));
      if (!start)
        throw new LockUnavailableError(
          `Redis at ${this.#redis.server} does not tell when it was started (INFO), so it can't be trusted to know all locks.`,
        );
      if (!start.run || start.run !== this.#run) this.#begin(start);
      this.#toldInEpoch = this.#redis.epoch;
    } finally {
      this.#asking = undefined;
    }
  }

  /** It is in a run that we have not heard of before. */
  #begin({ run, agoMs }: Start): void {
    const time = now();
    // What we have seen ourselves beats its clock, which may have been set since: it was still in the run before when we heard of that last.
    const atMost = this.#run && this.#isOneServer ? time - this.#heardAt : Infinity;
    this.#run = run;
    this.#heardAt = time;
    this.#guardMs = this.#longestLeaseMs;
    // However young it is, it was started before it told us.
    this.#overAt = time + this.#guardMs - Math.max(0, Math.min(agoMs, atMost));
  }
}

/** Reads `INFO server`. */
function startOf(info: string): Start | undefined {
  const told = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
  const uptime = told('uptime_in_seconds');
  if (uptime === undefined) return undefined;
  // The uptime is the difference of two times of day. If its clock is ahead of ours now, it may have been set forward in between by so much.
  const aheadMs = Math.max(0, Math.floor(Number(told('server_time_usec') ?? 0) / 1000) - Date.now());
  // And it counts whole seconds, so it can be almost one more than has really passed.
  return { run: told('run_id'), agoMs: (Number(uptime) - 1) * 1000 - aheadMs };
}
