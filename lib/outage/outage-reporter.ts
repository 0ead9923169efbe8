import type { Logger } from '@nestjs/common';
import { now } from '../clock/deadline.js';
import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import { SubscriptionReporter } from './subscription-reporter.js';

/** How often a long outage is told of again, in ms. */
const SUM_EVERY_MS = 60_000;

/** A server that is gone so soon after calls began to fail is why they did, in ms. */
const SAME_MS = 10_000;

/** No call may have failed for so long before one that works ends an outage, in ms: else a key that always fails would make two lines for each call. */
const QUIET_MS = 1_000;

interface Outage {
  readonly since: number;
  /** The server that can't be reached, where that is what began it. */
  readonly server: string | undefined;
  failed: number;
  lastFailedAt: number;
  toldAt: number;
}

/** Tells the log of an outage in which calls get no lock: when it begins, a sum every minute, and when it is over. Not of each call. */
export class OutageReporter {
  readonly servers: SubscriptionReporter;
  readonly #log: Pick<Logger, 'log' | 'warn'>;
  #outage: Outage | undefined;

  constructor(log: Pick<Logger, 'log' | 'warn'>) {
    this.#log = log;
    this.servers = new SubscriptionReporter(log);
  }

  /** @param what is wrong, as a sentence */
  begin(what: string, server?: string): void {
    const time = now();
    // A call may notice first that the server is gone.
    const isKnown =
      this.#outage &&
      (server === undefined || this.#outage.server !== undefined || time - this.#outage.since > SAME_MS);
    if (isKnown) return;
    if (!this.#outage) this.#log.warn(what);
    this.#outage = { since: time, failed: 0, toldAt: time, ...this.#outage, lastFailedAt: time, server };
  }

  /** A call got no lock, as the store did not answer or refused. */
  failed(error: LockUnavailableError): void {
    this.begin(`A lock can't be had: ${error.detail}`);
    error.isTold = true;
    const outage = this.#outage!;
    outage.failed++;
    outage.lastFailedAt = now();
    if (outage.lastFailedAt - outage.toldAt < SUM_EVERY_MS) return;
    outage.toldAt = outage.lastFailedAt;
    this.#log.warn(
      `No locks for ${shownDuration(now() - outage.since)} now, ${calls(outage)} so far. The last: ${error.detail}`,
    );
  }

  /** The store has answered a call. */
  succeeded(): void {
    if (this.#outage && now() - this.#outage.lastFailedAt >= QUIET_MS) this.end('Locks can be had again');
  }

  /**
   * @param what is right again, as a sentence without its end
   * @param server that can be reached again: it ends what it began
   */
  end(what: string, server?: string): void {
    const outage = this.#outage;
    if (!outage || (server !== undefined && outage.server !== server)) return;
    this.#outage = undefined;
    this.#log.log(`${what}, after ${shownDuration(now() - outage.since)}; ${calls(outage)}.`);
  }

  close(): void {
    this.servers.close();
  }
}

/** Says a time in ms as people do. */
export function shownDuration(ms: number): string {
  const seconds = ms / 1000;
  return seconds < 120 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : `${Math.round(seconds / 60)} min`;
}

const calls = ({ failed }: Outage): string => `${failed} ${failed === 1 ? 'call' : 'calls'} failed`;
