import { now } from '../clock/deadline.js';
import { TimeWheel } from '../clock/time-wheel.js';
import type { LostReason } from '../errors/lock-lost.error.js';
import type { LockStore, OwnedLock } from '../store/lock-store.js';
import { HandOffRun } from './lease/hand-off-run.js';
import type { Lease } from './lease/lease.js';
import { LeaseChanges } from './lease/lease-changes.js';
import type { LeaseRegistry } from './lease/lease-registry.js';
import type { Watchdog } from './lease/watchdog.js';
import { createLock } from './lock/create-lock.js';
import type { LockEvents } from './lock/lock-events.js';
import type { HoldTimes } from './lock/hold-time.js';
import type { Lock, LockIssuer, LockReports } from './lock/lock.js';
import { allowsHandOff } from './request/lock-request.js';
import type { LocalQueue } from './waiting/local-queue.js';
import type { PendingAcquires } from './waiting/pending-acquires.js';

interface LockReleaserParts {
  readonly store: LockStore;
  readonly events: LockEvents;
  readonly watchdog: Watchdog;
  readonly leases: LeaseRegistry;
  readonly localQueue: LocalQueue<Lock>;
  readonly pendingAcquires: PendingAcquires;
  readonly reports: LockReports;
}

/**
 * Takes locks back: hands them off to other callers of this process where it may, and otherwise releases them in the
 * store.
 */
export class LockReleaser implements LockIssuer {
  readonly changes: LeaseChanges;
  readonly events: LockEvents;
  readonly holdTimes: HoldTimes = new TimeWheel((times) => {
    for (const time of times) time.report();
  });
  readonly reports: LockReports;
  readonly #store: LockStore;
  readonly #watchdog: Watchdog;
  readonly #leases: LeaseRegistry;
  readonly #localQueue: LocalQueue<Lock>;
  readonly #pendingAcquires: PendingAcquires;

  constructor({ store, events, watchdog, leases, localQueue, pendingAcquires, reports }: LockReleaserParts) {
    this.changes = new LeaseChanges(store, watchdog, (lease) => this.#leaveTurns(lease));
    this.events = events;
    this.reports = reports;
    this.#store = store;
    this.#watchdog = watchdog;
    this.#leases = leases;
    this.#localQueue = localQueue;
    this.#pendingAcquires = pendingAcquires;
  }

  /** Ends a lock. Never rejects: the store itself tries again while it can't be reached. */
  unlock(lock: Lock): Promise<boolean> {
    if (lock.isNested) {
      lock.nesting.leave();
      return Promise.resolve(!lock.loss);
    }
    const lease = lock.leases[0]!;
    if (!lease.isHeld) {
      void this.#release(lease).then(() => this.#leases.forgetLost(lease));
      return Promise.resolve(false);
    }
    if (this.#handOff(lease, lock)) return Promise.resolve(true);
    return this.#giveBack(lock);
  }

  /** Forgets a lease that is lost, and gives its turns to the next callers of this process. */
  readonly onLost = (lease: Lease, reason: LostReason): void => {
    this.#watchdog.unwatch(lease);
    this.#leases.lose(lease, reason);
    this.#leaveTurns(lease);
  };

  /**
   * Takes all leases from their holders, and releases them, and what is left of lost ones. Waits also for those that
   * their holders give back at this moment: a store that is closed may drop what it has not sent yet.
   */
  async releaseAll(): Promise<void> {
    const held = [...this.#leases].filter(({ isHeld }) => isHeld);
    const lost = [...this.#leases.lost];
    for (const lease of held) lease.lose('shutdown');
    await Promise.all([...lost, ...held].map((lease) => this.#release(lease)));
    await this.#leases.whenReleased();
  }

  /** Reports no more locks that are held for too long. */
  stop(): void {
    this.holdTimes.clear();
  }

  /**
   * Releases a lock in the store. Never rejects.
   *
   * @param then gets whether the lock was ours, and makes the result. If the store does not answer, it counts as ours
   */
  release(owned: OwnedLock, keepMs = 0, then: (ours: boolean) => boolean = (ours) => ours): Promise<boolean> {
    try {
      return this.#store.release(owned, keepMs).then(then, () => then(true));
    } catch {
      return Promise.resolve(then(true));
    }
  }

  /** Releases a lease. The store has to try for as long as it may last there. */
  #release({ keys, token, longestMs, keepMs }: Lease, then?: (ours: boolean) => boolean): Promise<boolean> {
    return this.release({ keys, token, leaseMs: longestMs }, keepMs, then);
  }

  /** Gives the lock straight to the next caller of this process, if it may have it. */
  #handOff(lease: Lease, { key, fence }: Lock): boolean {
    const next = lease.fenceCount > 1 ? this.#localQueue.next(key) : undefined;
    if (
      !next ||
      lease.isTokenExposed ||
      lease.sharing !== 'exclusive' ||
      lease.keepMs > 0 ||
      !allowsHandOff(next) ||
      !lease.isGoodFor(next)
    )
      return false;
    // Whether other processes wait is unknown: assumes that some do.
    const run = (lease.handOffRun ??= new HandOffRun(
      { granted: true, fence, fenceCount: lease.fenceCount, contended: true },
      lease.repliedAt,
    ));
    if (!run.canHandOff) return false;
    const { renewUntil } = lease;
    const lock = createLock(lease, next, run.takeFence(), this);
    // Only then: otherwise a renewal that is under way would be sent again with each hand-off.
    if (lease.renewUntil !== renewUntil) this.#watchdog.replan(lease);
    this.#localQueue.handOff(key, lock);
    if (run.needsRefill(this.#localQueue.next(key) !== undefined)) void this.changes.refill(lease, run);
    return true;
  }

  #giveBack(lock: Lock): Promise<boolean> {
    const lease = lock.leases[0]!;
    lease.startRelease();
    this.#watchdog.unwatch(lease);
    const released = this.#release(lease, (ours) => {
      // Once the lease is over, the key has gone by itself: the work had ended before.
      if (!ours && now() < lease.endsAt) lock.lose('taken');
      this.#leases.delete(lease);
      return !lock.loss;
    });
    // The next caller of this process asks in the same tick, so "release this, and queue me" is one command.
    this.#leaveTurns(lease);
    return released;
  }

  /** Gives the turns of a lease to the next callers of this process. */
  #leaveTurns(lease: Lease): void {
    const { turns } = lease;
    lease.turns = [];
    this.#pendingAcquires.leaveLocalQueue(turns);
  }
}
