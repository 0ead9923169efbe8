import { now } from '../../clock/deadline.js';
import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { storeOutage } from '../../errors/store-outage.js';
import type { Connection } from '../connection/connection.js';

/** One start of a server. */
interface Start {
  /** Identifies this start (`run_id`); undefined where the server withholds it. */
  readonly run: string | undefined;
  /** How long ago it was, as far as the server's clock can be trusted. */
  readonly agoMs: number;
}

/** What a guard needs to know. */
export interface RestartGuardOptions {
  /** The longest lease that is known so far, in ms. */
  readonly longestLeaseMs: number;
  /**
   * Whether all connections lead to one server: then another `run_id` means a restart, and not another server that
   * took over.
   */
  readonly isOneServer: boolean;
}

/**
 * Knows whether a server may have forgotten locks, because it was started less than the longest lease ago. Until that
 * time has passed, a lock that the server forgot may still be held, so the server must not grant one.
 *
 * The time is fixed once for each start of the server (its `run_id`). A start can only have forgotten what was
 * granted before it: a longer lease that is used later, even while the time runs, changes nothing. Keys that stay
 * after the work (`atLeast`) don't count either: nobody is inside any more, so at worst a job runs again too soon.
 *
 * Only processes that were connected know of a start that the next master's data has been through. A key in the data
 * could tell the others that it began empty, but not that it was older.
 */
export class RestartGuard {
  readonly #redis: Connection;
  readonly #isOneServer: boolean;
  #longestLeaseMs: number;
  #run: string | undefined;
  /** When the server last replied in that run, on our clock. */
  #repliedAt = -Infinity;
  /** For how long after that start nothing is granted; and when that ends, on our clock. */
  #guardMs = 0;
  #overAt = Infinity;
  /**
   * The epoch of the connection when the server was asked. In a later one it may be another server, or have been
   * restarted.
   */
  #checkedInEpoch = -1;
  #asking: Promise<void> | undefined;

  constructor(redis: Connection, { longestLeaseMs, isOneServer }: RestartGuardOptions) {
    this.#redis = redis;
    this.#longestLeaseMs = longestLeaseMs;
    this.#isOneServer = isOneServer;
  }

  /**
   * Asks the server as soon as a connection to it is made. By the next acquire another may have taken over, and whether
   * this one had just started could not be found out any more.
   */
  noteConnection(): void {
    // If it does not say, the next acquire asks again.
    this.#askOnce().catch(() => undefined);
  }

  /** Notes a lease that is asked for. */
  noteLease(leaseMs: number): void {
    this.#longestLeaseMs = Math.max(this.#longestLeaseMs, leaseMs);
  }

  /**
   * Notes that the server replied.
   *
   * @param epoch that of the connection before the command was sent
   */
  noteReply(epoch: number): void {
    if (epoch === this.#checkedInEpoch && epoch === this.#redis.epoch) this.#repliedAt = now();
  }

  /** Whether the server is known to have forgotten nothing. */
  get isOver(): boolean {
    return this.#checkedInEpoch === this.#redis.epoch && now() >= this.#overAt;
  }

  /** @throws LockUnavailableError when the server must not grant locks yet, or can't be asked */
  async check(): Promise<void> {
    if (this.#checkedInEpoch !== this.#redis.epoch) await this.#askOnce();
    const leftMs = this.#overAt - now();
    if (leftMs <= 0) return;
    throw outage(
      `Redis at ${this.#redis.server} was started a moment ago and may have forgotten locks that are still held: ` +
        `it grants none for another ${Math.ceil(leftMs / 1000)} s, ` +
        `until the longest lease (${this.#guardMs} ms) has passed.`,
    );
  }

  #askOnce(): Promise<void> {
    return (this.#asking ??= this.#ask());
  }

  async #ask(): Promise<void> {
    try {
      const start = startOf(String(await this.#redis.command('INFO', 'server')));
      if (!start)
        throw outage(
          `Redis at ${this.#redis.server} does not say when it was started (INFO), ` +
            "so it can't be trusted to know all locks.",
        );
      if (!start.run || start.run !== this.#run) this.#begin(start);
      this.#checkedInEpoch = this.#redis.epoch;
    } finally {
      this.#asking = undefined;
    }
  }

  /** The server is in a run that is new to this guard. */
  #begin({ run, agoMs }: Start): void {
    const time = now();
    // Our own observation beats the server's clock, which may have been set since: at its last reply the server was
    // still in the run before.
    const atMost = this.#run && this.#isOneServer ? time - this.#repliedAt : Infinity;
    this.#run = run;
    this.#repliedAt = time;
    this.#guardMs = this.#longestLeaseMs;
    // However young the server is, it was started before it replied.
    const overAt = time + this.#guardMs - Math.max(0, Math.min(agoMs, atMost));
    // A server that takes over has what the one before had: if that one was young, both may have forgotten the same.
    this.#overAt = this.#overAt === Infinity ? overAt : Math.max(overAt, this.#overAt);
  }
}

/** Reads `INFO server`. */
function startOf(info: string): Start | undefined {
  const field = (name: string): string | undefined => new RegExp(`^${name}:(\\S+)`, 'm').exec(info)?.[1];
  const uptime = field('uptime_in_seconds');
  if (uptime === undefined) return undefined;
  // The uptime is the difference of two times of day. If the server's clock is ahead of ours, it may have been set
  // forward in between by as much.
  const aheadMs = Math.max(0, Math.floor(Number(field('server_time_usec') ?? 0) / 1000) - Date.now());
  // It counts whole seconds, so it can be almost one second more than has passed.
  return { run: field('run_id'), agoMs: (Number(uptime) - 1) * 1000 - aheadMs };
}

const outage = (message: string): LockUnavailableError => storeOutage(new LockUnavailableError(message));
