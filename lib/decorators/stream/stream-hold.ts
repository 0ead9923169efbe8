import { LONGEST_TIMER_MS } from '../../clock/deadline.js';
import type { Lock } from '../../core/lock/lock.js';
import { leaveUnread } from '../../core/result-work.js';
import type { LockLostError } from '../../errors/lock-lost.error.js';
import { lostError } from '../../service/call-errors.js';
import type { RequestPort } from '../../service/request-port.js';

/** The lock of a stream. */
export interface StreamLock {
  readonly lock: Lock;
  readonly onLost: 'throw' | 'ignore';
  /** The requests that callers of the lock service answer. */
  readonly requests: RequestPort;
  /** Whether the gRPC call of the method has ended. */
  readonly hasCallEnded?: boolean;
}

/**
 * How long a reader may take to come when the request is over: Nest reads nothing for a client that has gone, but what
 * the request has started may still read.
 */
const LONGEST_AFTER_REQUEST_MS = 1000;

/**
 * Returns the lease that the caller asked for, for a timer. A lock that was handed off lasts less at first, and is
 * renewed soon. `0`: the lock is not held.
 */
export const leaseMsOf = (lock: Lock): number =>
  lock.isHeld ? Math.min(...lock.leases.map(({ leaseMs }) => leaseMs), LONGEST_TIMER_MS) : 0;

/** What the readers of a stream hear of its lock. */
type ToldLock = Pick<StreamLock, 'lock' | 'onLost'>;

/**
 * Returns the loss of the lock that the readers of its streams hear of, if there is one. Reads the clock, so it knows a
 * loss that no timer has reported yet. A lock that its owner has released is not lost.
 */
export function lossToTell({ lock, onLost }: ToldLock): LockLostError | undefined {
  return onLost === 'throw' && !lock.isHeld ? lock.loss : undefined;
}

/** @throws LockLostError when there is a loss that the readers hear of */
export function assertNotLost(told: ToldLock): void {
  const lost = lossToTell(told);
  if (lost) throw lost;
}

/**
 * Makes the error that a reader gets.
 *
 * @param failure of the stream. When the lock is lost, that is told instead, because the failure may come from it.
 */
export function toldError(streamLock: StreamLock, failure?: unknown): unknown {
  const lost = lossToTell(streamLock);
  return lost ? lostError(lost, streamLock.requests, failure) : streamLock.requests.attachError(failure);
}

/**
 * Holds a lock for a stream. If nobody begins to read the stream within the lease, it releases the lock: otherwise the
 * watchdog would renew it for ever.
 */
export class StreamHold {
  /** Resolves when the lock may be released. Never rejects. */
  readonly ended: Promise<void>;
  readonly #lock: Lock;
  #unreadTimer: NodeJS.Timeout;
  /** Stops waiting for the end of the request. A long one may read many streams. */
  readonly #stopWatching: () => void;
  #resolve!: () => void;
  #hasEnded = false;
  #isRead = false;
  /**
   * Whether the stream released its lock. A method that released the lock itself wants its stream to be read without
   * the lock.
   */
  #released = false;

  constructor({ lock, requests, hasCallEnded }: StreamLock) {
    this.#lock = lock;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    this.#stopWatching = requests.watch(() => this.#requestOver());
    const longestMs = requests.isOver() || hasCallEnded ? LONGEST_AFTER_REQUEST_MS : Infinity;
    this.#unreadTimer = this.#releaseAfter(Math.min(leaseMsOf(lock), longestMs));
  }

  /** Whether the stream was read to its end. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /**
   * Notes that a reader has come.
   *
   * @throws LockLostError when the stream has released the lock, or when the lock is lost and `onLost` is `'throw'`
   */
  startReading(onLost: 'throw' | 'ignore'): void {
    this.#stopTimer();
    this.#isRead = true;
    try {
      if (this.#released || (this.#hasEnded && this.#lock.loss)) this.#lock.assertHeld();
      else assertNotLost({ lock: this.#lock, onLost });
    } catch (error) {
      // A call around this one waits for the end, too.
      this.#resolve();
      throw error;
    }
  }

  /** Releases the lock; settles when the key is free. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    this.#release();
    await this.#lock.unlock();
  }

  /** Releases the lock, and that of a stream that this one reads, unless a reader has come. */
  leaveUnread(source: unknown): void {
    if (this.#isRead) return;
    void this.end();
    leaveUnread(source);
  }

  #requestOver(): void {
    this.#stopTimer();
    this.#unreadTimer = this.#releaseAfter(Math.min(leaseMsOf(this.#lock), LONGEST_AFTER_REQUEST_MS));
  }

  #releaseAfter(ms: number): NodeJS.Timeout {
    return setTimeout(() => this.#release(), ms).unref();
  }

  #stopTimer(): void {
    clearTimeout(this.#unreadTimer);
    this.#stopWatching();
  }

  #release(): void {
    this.#stopTimer();
    this.#released ||= this.#lock.isHeld;
    this.#resolve();
  }
}
