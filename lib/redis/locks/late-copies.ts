import { now } from '../../clock/deadline.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { AcquireCommand, Cancellation, OwnedLock } from '../../store/lock-store.js';
import type { Connection } from '../connection/connection.js';
import { NotSentError } from '../connection/connection-errors.js';
import type { Orphans } from './orphans.js';
import { CopyCounts } from './copy-counts.js';

/**
 * Releases what a late command acquires: one that was sent twice, or whose reply never came, may still arrive after
 * its lock was released.
 *
 * It compares epochs of the connection: as often as the connection dropped since a command was first sent, a copy of
 * it may still be under way.
 */
export class LateCopies {
  readonly #redis: Pick<Connection, 'epoch'>;
  /** Copies of commands whose lock is held or waited for. */
  readonly #counts = new CopyCounts();
  /** Locks that nobody wants any more. */
  readonly #orphans: Orphans;

  constructor(redis: Pick<Connection, 'epoch'>, orphans: Orphans) {
    this.#redis = redis;
    this.#orphans = orphans;
  }

  /** The command was granted, or refused with an error. */
  settled(command: AcquireCommand, sentInEpoch: number): void {
    this.#counts.add(command, this.#redis.epoch - sentInEpoch);
  }

  /** Somebody else has the key. */
  busy(command: AcquireCommand, sentInEpoch: number): void {
    const copies = this.#redis.epoch - sentInEpoch;
    // A waiter gets its lock later. Nobody else wants what an earlier copy acquires.
    if (command.queue) this.#counts.add(command, copies);
    else if (copies !== 0) this.#orphans.add(command, copies);
  }

  /** The outcome of the command is unknown. */
  failed(command: AcquireCommand, sentInEpoch: number, error: LockUnavailableError): void {
    const isSent = !(error instanceof NotSentError);
    if (isSent) this.settled(command, sentInEpoch);
    // Its place in the queue may be handed the lock, and be released, before the command arrives.
    const copies = this.take(command) + (isSent ? 1 : 0) + (command.isQueued ? 1 : 0);
    if (copies > 0) this.#orphans.add(command, copies);
  }

  /** Returns how many copies of a command may still arrive, and forgets them, because its lock is being released. */
  take(command: Cancellation): number {
    return this.#counts.take(command)?.copies ?? 0;
  }

  /**
   * The lock was cancelled, if that is known.
   *
   * @param copies what `take` returned before
   */
  cancelled(command: Cancellation, copies: number, isKnown: boolean): void {
    if (copies > 0 || !isKnown) this.#orphans.add(command, isKnown ? copies : copies + 1);
  }

  released(lock: OwnedLock): void {
    const counted = this.#counts.take(lock);
    if (counted) this.#orphans.add(counted.lock, counted.copies);
  }

  /**
   * @param lock its lease is the longest that it may have, also when it was acquired for less
   * @param keepUntil until when the keys are to stay
   */
  releaseFailed(lock: Cancellation, keepUntil: number): void {
    const counted = this.#counts.take(lock);
    const keepMs = Math.max(0, keepUntil - now());
    this.#orphans.add(counted?.lock ?? lock, (counted?.copies ?? 0) + 1, { keepMs, leaseMs: lock.leaseMs });
  }
}
