import type { LockStore, OwnedLock, RenewalOutcome } from '../../store/lock-store.js';
import { now, roundedDown, timerAt } from '../../clock/deadline.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { Lease } from './lease.js';
import { TimeWheel } from '../../clock/time-wheel.js';

/** Keys in one call to the store. A single lock may have more. */
const BATCH = 128;

/** Due times are rounded down to this part of the interval, so that locks renew together. */
const RENEWAL_STEP = 1 / 20;

/**
 * When a lock that was handed over for a short time is first renewed, in ms: most work is done by then, and needs no
 * renewal.
 */
const FIRST_RENEWAL_MS = 250;
const FIRST_RENEWAL_STEP_MS = 25;

/**
 * How much before its end a lease is ended here, in ms: timers fire late, and an expired lease must never have a live
 * signal.
 */
const TIMER_DELAY_MS = 2;

/**
 * Renews each lease when a third of it is over, in batches, from one shared timer; tries again after an error; and ends
 * a lease at its own deadline when no renewal was confirmed, whether the store answers or not.
 */
export class Watchdog {
  readonly #store: LockStore;
  readonly #onUnrenewed: (error: LockUnavailableError) => void;
  readonly #wheel = new TimeWheel<Lease>((leases) => this.#check(leases));

  /** @param onUnrenewed called when renewals of a lock fail again and again */
  constructor(store: LockStore, onUnrenewed: (error: LockUnavailableError) => void) {
    this.#store = store;
    this.#onUnrenewed = onUnrenewed;
  }

  /** Renews a lease from now on. */
  watch(lease: Lease): void {
    this.#checkAt(lease, this.#renewalOf(lease));
  }

  /** Forgets a lease at once: it is never renewed after this. */
  unwatch(lease: Lease): void {
    this.#wheel.delete(lease.dueAt, lease);
  }

  /** Plans the next check anew, because something else renewed the lease or it has a new holder. */
  replan(lease: Lease): void {
    this.unwatch(lease);
    if (lease.isHeld) this.watch(lease);
  }

  /**
   * Loses those of these leases that the store does not have any more, and makes none longer: the server may have
   * forgotten them, or a message was missed.
   */
  async verify(leases: readonly Lease[]): Promise<void> {
    await Promise.all(
      this.#batches(leases).map(async (batch) => {
        const held = batch.filter(({ isHeld }) => isHeld);
        const asked = new Map(held.map((lease) => [asItIs(lease), lease]));
        const locks = [...asked.keys()];
        for (const one of await this.#goneOf(locks)) {
          const lease = asked.get(one)!;
          if (!lease.hasEndedWriting(one.upgrade ?? 0)) lease.lose('taken');
        }
      }),
    );
  }

  /** A store of the app's may throw, or return nothing, as a mock does. */
  async #goneOf(locks: readonly OwnedLock[]): Promise<RenewalOutcome['gone']> {
    try {
      const { gone } = await (this.#store.missing?.(locks) ?? this.#store.renew(locks));
      return gone;
    } catch {
      return [];
    }
  }

  /** Whether the store says that a lease is gone. Also true when the store can't say. */
  async mayBeGone(lease: Lease): Promise<boolean> {
    try {
      const asked = [asItIs(lease)];
      const { gone, unknown } = await (this.#store.missing?.(asked) ?? this.#store.renew(asked));
      return gone.length + unknown.length > 0;
    } catch {
      return true;
    }
  }

  stop(): void {
    this.#wheel.clear();
  }

  #check(leases: readonly Lease[]): void {
    const time = now();
    const due: Lease[] = [];
    for (const lease of leases) {
      if (isOver(lease)) continue;
      const dueAt = time < lease.renewUntil ? this.#renewalOf(lease) : lease.endsAt;
      // Something else may have renewed it meanwhile.
      if (dueAt <= time) due.push(lease);
      else this.#checkAt(lease, dueAt);
    }
    for (const batch of this.#batches(due)) void this.#renew(batch);
  }

  #batches(leases: readonly Lease[]): (readonly Lease[])[] {
    const groups = this.#store.renewalGroups?.(leases) ?? [leases];
    return groups.flatMap((group) => batches(group));
  }

  async #renew(leases: readonly Lease[]): Promise<void> {
    const sentAt = now();
    for (const lease of leases) lease.renewalSent(sentAt, lease.leaseMs);
    const sent = leases.map(({ leaseMs, upgrade }) => ({ leaseMs, upgrade }));
    // Without a reply, neither the next try nor the end of a lease waits for one.
    const patience = timerAt(Math.min(sentAt + Math.min(...leases.map(shorter)) / 4, ...leases.map(endingOf)), () =>
      this.#planAll(leases, () => 0),
    );
    try {
      const { gone, unknown, error } = await this.#store.renew(leases);
      const isUnknown = (lease: Lease) => unknown.includes(lease);
      if (error) this.#noteFailure(leases.filter(isUnknown), sentAt, error);
      leases.forEach((lease, index) => {
        const { leaseMs, upgrade } = sent[index]!;
        const isGone = gone.includes(lease);
        if (isGone && !lease.hasEndedWriting(upgrade)) lease.lose('taken');
        if (!lease.isHeld) return;
        if (isGone || isUnknown(lease)) return this.#plan(lease, now() + retryAfter(lease));
        lease.confirm(sentAt, leaseMs);
        this.#plan(lease, this.#renewalOf(lease));
      });
    } catch (error) {
      this.#noteFailure(leases, sentAt, error as LockUnavailableError);
      this.#planAll(leases, retryAfter);
    } finally {
      clearTimeout(patience);
    }
  }

  /** Notes that a renewal failed. Reports the second one in a row: one alone passes, as in a failover. */
  #noteFailure(leases: readonly Lease[], sentAt: number, error: LockUnavailableError): void {
    if (leases.some(({ isHeld, renewalError }) => isHeld && renewalError)) this.#onUnrenewed(error);
    for (const lease of leases) lease.renewalFailed(sentAt, error);
  }

  #planAll(leases: readonly Lease[], inMs: (lease: Lease) => number): void {
    const time = now();
    for (const lease of leases) this.#plan(lease, time + inMs(lease));
  }

  #plan(lease: Lease, atMs: number): void {
    if (isOver(lease)) return;
    this.unwatch(lease);
    this.#checkAt(lease, atMs);
  }

  #checkAt(lease: Lease, atMs: number): void {
    lease.dueAt = Math.min(Math.floor(atMs), endingOf(lease));
    this.#wheel.add(lease.dueAt, lease);
  }

  /**
   * A third of the lease after it was last confirmed; at once, when that is past. Soon, when it was handed over for
   * less than its lease.
   */
  #renewalOf({ confirmedAt, repliedAt, leaseMs, confirmedMs, renewUntil, endsAt }: Lease): number {
    if (confirmedAt >= renewUntil) return endsAt;
    if (confirmedMs < leaseMs) return roundedDown(repliedAt + FIRST_RENEWAL_MS, FIRST_RENEWAL_STEP_MS);
    const interval = leaseMs / 3;
    return roundedDown(confirmedAt + interval, interval * RENEWAL_STEP);
  }
}

function batches(leases: readonly Lease[]): Lease[][] {
  const all: Lease[][] = [];
  let keys = Infinity;
  for (const lease of leases) {
    keys += lease.keys.length;
    if (keys > BATCH) {
      keys = lease.keys.length;
      all.push([]);
    }
    all.at(-1)!.push(lease);
  }
  return all;
}

/** A renewal that changes nothing: it asks for no more than is left of the lease on the server. */
const asItIs = ({ keys, token, endsAt, upgrade }: Lease): OwnedLock => ({
  keys,
  token,
  leaseMs: Math.max(1, Math.floor(endsAt - now())),
  upgrade,
});

/** How long it is sure to last: the lease, or the time it was handed over for. */
const shorter = ({ leaseMs, confirmedMs }: Lease): number => Math.min(leaseMs, confirmedMs);

/** After how long a renewal that failed is tried again. */
const retryAfter = (lease: Lease): number => shorter(lease) / 20;

/** When a lease that nobody has renewed is ended. */
const endingOf = ({ endsAt }: Lease): number => Math.floor(endsAt - TIMER_DELAY_MS);

/** Ends a lease whose time has come. */
function isOver(lease: Lease): boolean {
  if (now() >= endingOf(lease)) lease.lose('expired');
  return !lease.isHeld;
}
