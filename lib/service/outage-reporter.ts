import type { Log } from '../log/safe-log.js';
import { now } from '../clock/deadline.js';
import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import { SubscriptionReporter } from './subscription-reporter.js';

/** How often a long outage is reported again, in ms. */
const SUMMARY_EVERY_MS = 60_000;

/**
 * After how long without a call nobody knows how long an outage lasted, in ms. Jobs that run each minute pause for less.
 */
const FORGOTTEN_MS = 90_000;

/** A server that becomes unreachable this soon after calls began to fail is taken for the cause, in ms. */
const SAME_OUTAGE_MS = 10_000;

/**
 * How long no call may fail before a call that works ends an outage, in ms. Otherwise a key that always fails would
 * make two lines for each call. The longer one goes for an outage that begins again soon after such an end: of some
 * keys only, as when one master of a cluster is down, so what works says little of it.
 */
const [QUIET_MS, LONG_QUIET_MS] = [1_000, 60_000];

interface Outage {
  readonly since: number;
  /** The server that can't be reached, where that began the outage. */
  readonly server: string | undefined;
  /** Whether a call worked meanwhile. */
  isPartial: boolean;
  failed: number;
  lastFailedAt: number;
  /** Since when calls work, if none has failed since then. */
  workingSince: number | undefined;
  /** Since when calls fail, if none has worked since then, and when calls worked before that. */
  failingSince: number;
  workedAt: number | undefined;
  reportedAt: number;
}

/** Logs an outage in which calls get no lock: its beginning, a summary every minute, and its end, but not each call. */
export class OutageReporter {
  readonly subscriptions: SubscriptionReporter;
  readonly #log: Pick<Log, 'log' | 'warn'>;
  #outage: Outage | undefined;
  /** When a call that worked last ended an outage. */
  #workedAt = -Infinity;
  #quietMs = QUIET_MS;
  #unrenewedAt = -Infinity;
  /** When a question last had a line of its own. */
  #ownReasonAt = -Infinity;

  constructor(log: Pick<Log, 'log' | 'warn'>) {
    this.#log = log;
    this.subscriptions = new SubscriptionReporter(log);
  }

  /** Whether the log tells of an outage that goes on: its server is gone, or a call has failed just now. */
  get isLogged(): boolean {
    const outage = this.#outage;
    return outage !== undefined && (outage.server !== undefined || now() - outage.lastFailedAt <= SAME_OUTAGE_MS);
  }

  /** @param line says what is wrong, as a sentence */
  begin(line: string, server?: string): void {
    const time = now();
    this.#endEarlier(time, server);
    const outage = this.#outage;
    if (outage && (server === undefined || outage.server !== undefined)) return;
    if (!this.isLogged) this.#log.warn(line);
    // A call may notice before the connection does that the server is gone.
    else if (outage && time - outage.since > SAME_OUTAGE_MS) return;
    if (!outage) this.#quietMs = time - this.#workedAt < LONG_QUIET_MS ? LONG_QUIET_MS : QUIET_MS;
    this.#outage = { ...beginningAt(time), ...outage, lastFailedAt: time, server };
  }

  /** Counts a call that got no lock, because the store did not reply or refused. */
  failed(error: LockUnavailableError): void {
    this.begin(`A lock can't be acquired: ${error.detail}`);
    error.isReported = true;
    const outage = this.#outage!;
    outage.failed++;
    outage.lastFailedAt = now();
    if (outage.workingSince !== undefined) {
      outage.workedAt = outage.workingSince;
      outage.workingSince = undefined;
      outage.failingSince = outage.lastFailedAt;
    }
    if (outage.lastFailedAt - outage.reportedAt < SUMMARY_EVERY_MS) return;
    outage.reportedAt = outage.lastFailedAt;
    const [what, since] = outage.isPartial
      ? ['Some locks have not been acquired', outage.since]
      : ['No locks', outage.failingSince];
    const duration = shownDuration(now() - since);
    this.#log.warn(`${what} for ${duration} now, ${failedCalls(outage)} so far. The last: ${error.detail}`);
    outage.isPartial = false;
  }

  /**
   * Counts a question about a key that had no reply in an outage. It does not keep one open after which calls work,
   * unless a server is gone: its own reason may be another one, such as a missing right.
   *
   * @param isOfKey whether it may have failed for the sake of its key: then it has a line, but once a minute at most
   */
  questionFailed(error: LockUnavailableError, isOfKey: boolean): void {
    const time = now();
    const outage = this.#outage;
    if (!outage) return;
    const { server, workingSince, lastFailedAt } = outage;
    const isOpen = this.isLogged || (workingSince !== undefined && time - lastFailedAt <= this.#quietMs);
    if (!isOpen) return;
    if (isOfKey) {
      error.isReported = time < this.#ownReasonAt + SUMMARY_EVERY_MS;
      if (!error.isReported) this.#ownReasonAt = time;
    } else if (server !== undefined || workingSince === undefined) this.failed(error);
    else {
      outage.failed++;
      error.isReported = true;
    }
  }

  /**
   * Notes that a held lock can't be renewed. Logs it once a minute at most, and not in an outage that has been
   * reported: there are calls that work meanwhile.
   */
  unrenewed({ detail }: LockUnavailableError): void {
    const time = now();
    const isKnown = this.isLogged && this.#outage?.workingSince === undefined;
    if (isKnown || time < this.#unrenewedAt + SUMMARY_EVERY_MS) return;
    this.#unrenewedAt = time;
    this.#log.warn(`A held lock can't be renewed, and is lost when its lease is over: ${detail}`);
  }

  /** Notes that the store has replied to a call. */
  succeeded(): void {
    const outage = this.#outage;
    if (!outage) return;
    if (outage.workingSince === undefined && isForgotten(outage)) return this.#endAt(undefined);
    outage.isPartial = true;
    outage.workingSince ??= now();
    if (now() - outage.lastFailedAt >= this.#quietMs) this.#endAt(outage.workingSince);
  }

  /**
   * Ends an outage after which calls have worked: what begins now is another one. Forgets one of which no call has told
   * for long: nobody knows how long it lasted.
   *
   * @param server that goes away now; undefined when a call fails
   */
  #endEarlier(time: number, server: string | undefined): void {
    const outage = this.#outage;
    if (!outage || outage.server !== undefined || (server === undefined && !isForgotten(outage))) return;
    const { workingSince, failingSince, workedAt, lastFailedAt } = outage;
    if (workingSince !== undefined) this.#endAt(workingSince, lastFailedAt + this.#quietMs);
    else if (isForgotten(outage)) this.#outage = undefined;
    else if (workedAt !== undefined && time - failingSince <= SAME_OUTAGE_MS) this.#endAt(workedAt);
  }

  /** @param noticedAt when it is known that it is over, at the latest now */
  #endAt(time: number | undefined, noticedAt = Infinity): void {
    this.#workedAt = Math.min(noticedAt, now());
    this.#end('Locks can be acquired again', time);
  }

  /**
   * @param what is right again, as a sentence without its full stop
   * @param server that can be reached again: it ends only an outage that it began
   */
  end(what: string, server?: string): void {
    if (server === undefined || this.#outage?.server === server) this.#end(what, now());
  }

  /** @param time since when it is right again, if that is known */
  #end(what: string, time: number | undefined): void {
    const outage = this.#outage;
    if (!outage) return;
    this.#outage = undefined;
    const duration = time === undefined ? '' : `, after ${shownDuration(time - outage.since)}`;
    this.#log.log(`${what}${duration}; ${failedCalls(outage)}.`);
  }

  close(): void {
    this.subscriptions.close();
  }
}

const beginningAt = (time: number): Omit<Outage, 'lastFailedAt' | 'server'> => ({
  since: time,
  isPartial: false,
  failed: 0,
  workingSince: undefined,
  failingSince: time,
  workedAt: undefined,
  reportedAt: time,
});

/** Whether no call has told of it for so long that it may be over. */
const isForgotten = ({ server, lastFailedAt }: Outage): boolean =>
  server === undefined && now() - lastFailedAt > FORGOTTEN_MS;

/** Writes a duration in ms as people do. */
export function shownDuration(ms: number): string {
  if (ms === Infinity) return 'no end';
  const seconds = ms / 1000;
  return seconds < 120 ? `${seconds.toFixed(seconds < 10 ? 1 : 0)} s` : `${Math.round(seconds / 60)} min`;
}

const failedCalls = ({ failed }: Outage): string => `${failed} ${failed === 1 ? 'call' : 'calls'} failed`;
