import type { LockStore, Renewal } from '../store/lock-store.js';
import { now, roundedDown, timerAt } from '../clock/deadline.js';
import type { Lease } from './lease.js';
import { PartlyRenewedError } from '../store/quorum-renewal.js';
import { TimeWheel } from '../clock/time-wheel.js';

/** Locks in one call to the store. */
const BATCH = 128;

/** Renewal times are rounded down to this part of the interval, so that locks renew together. */
const RENEWAL_STEP = 1 / 20;

/** A lease is ended so long before its end, in ms: a timer may be late by as much, and nobody is to see a lease that is over and a signal that is not. */
const TIMER_LATE_MS = 2;

/**
 * Renews every lease at a third of it, in batches, from one shared timer; and ends a lease at its own deadline when
 * no renewal was confirmed, whether the store answers or not. An error is tried again until that deadline.
 */
export class Watchdog {
  readonly #store: LockStore;
  readonly #wheel = new TimeWheel<Lease>((leases) => this.#look(leases));

  constructor(store: LockStore) {
    this.#store = store;
  }

  watch(lease: Lease): void {
    this.#lookAgainAt(lease, this.#renewalOf(lease));
  }

  /** Forgets a lease at once: it is never renewed after this. */
  unwatch(lease: Lease): void {
    this.#wheel.delete(lease.dueAt, lease);
  }

  /** Somebody else renewed it, or let a new holder in: plan anew. */
  replan(lease: Lease): void {
    this.unwatch(lease);
    if (lease.isHeld) this.watch(lease);
  }

  /** Finds out which of these are lost, without renewing any: the server may have forgotten them, or we missed that they were taken away. */
  async verify(leases: readonly Lease[]): Promise<void> {
    await Promise.all(
      this.#batches(leases).map(async (batch) => {
        const held = batch.filter(({ isHeld }) => isHeld);
        // What is left of a lease on the server is more than that, so it is not pushed out.
        const asked = new Map(held.map((lease) => [{ keys: lease.keys, token: lease.token, leaseMs: Math.max(1, Math.floor(lease.endsAt - now())) }, lease]));
        const gone = await this.#store.renew([...asked.keys()]).catch(() => []);
        for (const one of gone) asked.get(one)!.lose('taken');
      }),
    );
  }

  stop(): void {
    this.#wheel.clear();
  }

  #look(leases: readonly Lease[]): void {
    const time = now();
    const due: Lease[] = [];
    for (const lease of leases) {
      if (isOver(lease)) continue;
      if (time < lease.renewUntil) due.push(lease);
      else this.#lookAgainAt(lease, lease.endsAt);
    }
    for (const batch of this.#batches(due)) void this.#renew(batch);
  }

  #batches(leases: readonly Lease[]): (readonly Lease[])[] {
    const apart = this.#store.apart?.(leases) ?? [leases];
    return apart.flatMap((part) => Array.from({ length: Math.ceil(part.length / BATCH) }, (_, index) => part.slice(index * BATCH, (index + 1) * BATCH)));
  }

  async #renew(leases: readonly Lease[]): Promise<void> {
    const sentAt = now();
    const sent = leases.map(({ leaseMs }) => leaseMs);
    // Should the answer stay away, neither the next try nor the end of a lease waits for it.
    const patience = timerAt(Math.min(sentAt + Math.min(...sent) / 4, ...leases.map(endingOf)), () => this.#planAll(leases, now()));
    try {
      const { gone, unknown } = await this.#store.renew(leases).then(wholly, partly);
      for (const lease of gone) (lease as Lease).lose('taken');
      leases.forEach((lease, index) => {
        if (!lease.isHeld) return;
        if (unknown.includes(lease)) return this.#plan(lease, now() + sent[index]! / 20);
        lease.confirm(sentAt, sent[index]!);
        this.#plan(lease, this.#renewalOf(lease));
      });
    } catch {
      this.#planAll(leases, now() + Math.min(...sent) / 20);
    } finally {
      clearTimeout(patience);
    }
  }

  #planAll(leases: readonly Lease[], atMs: number): void {
    for (const lease of leases) this.#plan(lease, atMs);
  }

  #plan(lease: Lease, atMs: number): void {
    if (isOver(lease)) return;
    this.unwatch(lease);
    this.#lookAgainAt(lease, atMs);
  }

  #lookAgainAt(lease: Lease, atMs: number): void {
    lease.dueAt = Math.min(Math.floor(atMs), endingOf(lease));
    this.#wheel.add(lease.dueAt, lease);
  }

  /** A third of the lease after it was last confirmed; at once, when that is past. */
  #renewalOf({ confirmedAt, leaseMs, renewUntil, endsAt }: Lease): number {
    if (confirmedAt >= renewUntil) return endsAt;
    const interval = leaseMs / 3;
    return roundedDown(confirmedAt + interval, interval * RENEWAL_STEP);
  }
}

/** When a lease that nobody has renewed is ended. */
const endingOf = ({ endsAt }: Lease): number => Math.floor(endsAt - TIMER_LATE_MS);

/** Ends a lease whose time has come. */
function isOver(lease: Lease): boolean {
  if (now() >= endingOf(lease)) lease.lose('expired');
  return !lease.isHeld;
}

type Outcome = Pick<PartlyRenewedError, 'gone' | 'unknown'>;

const wholly = (gone: readonly Renewal[]): Outcome => ({ gone, unknown: [] });

/** What is known of a renewal all the same. */
function partly(error: unknown): Outcome {
  if (error instanceof PartlyRenewedError) return error;
  throw error;
}
