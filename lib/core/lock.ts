import { LockLostError } from '../errors/lock-lost.error.js';
import { now } from '../clock/deadline.js';
import { durationMs, type Duration } from '../clock/duration.js';
import { KeyGate } from './key-gate.js';
import type { Lease } from './lease.js';
import { SMALLEST_LEASE_MS } from './lock-options.js';

/** What a lock asks of whoever gave it. */
interface LockGiver {
  extend(lease: Lease, leaseMs: number): Promise<void>;
  unlock(lock: Lock): Promise<boolean>;
}

/** What a caller holds while it is inside. */
export class Lock implements AsyncDisposable {
  readonly #lease: Lease;
  readonly #giver: LockGiver;
  readonly #keys: readonly string[];
  readonly #acquiredAt = Date.now();
  #unlocking: Promise<boolean> | undefined;
  /** Why a nested lock is lost though the lease goes on: its outer call has ended. */
  #lost: LockLostError | undefined;
  #outerEnded: AbortController | undefined;
  #signal: AbortSignal | undefined;

  /** The lock of the outer call that this one is nested in. @internal */
  readonly outer: Lock | undefined;
  #inner: KeyGate | undefined;
  #nested: Set<Lock> | undefined;

  /** @internal */
  constructor(keys: readonly string[], lease: Lease, giver: LockGiver, outer?: Lock) {
    this.#keys = keys;
    this.#lease = lease;
    this.#giver = giver;
    this.outer = outer;
    if (outer) (outer.#nested ??= new Set()).add(this);
  }

  /** The key; of several, the first in their order. */
  get key(): string {
    return this.#keys[0]!;
  }

  /** All keys of this lock, without duplicates, in the order they are taken. */
  get keys(): readonly string[] {
    return this.#keys;
  }

  /** The owner id that stands in Redis under the key while this lock is held. */
  get token(): string {
    return this.#lease.token;
  }

  /** Larger than the fence of every earlier holder of the key. Send it to the database and let it refuse smaller ones. */
  get fence(): number {
    return this.#lease.fence;
  }

  get mode(): 'exclusive' {
    return 'exclusive';
  }

  get acquiredAt(): Date {
    return new Date(this.#acquiredAt);
  }

  /**
   * Aborts with `LockLostError` when the lock is lost, at the latest when the lease ends by our own monotonic clock,
   * even if Redis is gone. Does not abort on `unlock()`, but that of a nested lock does when its outer call ends first.
   */
  get signal(): AbortSignal {
    void this.isHeld;
    this.#signal ??= this.outer ? this.#nestedSignal() : this.#lease.signal;
    return this.#signal;
  }

  /** How long the lock is still good for if nobody renews it, in ms. `0` once it is unlocked or lost. */
  remaining(): number {
    return this.isHeld ? this.#lease.endsAt - now() : 0;
  }

  /** Whether it is held at this very moment. Reads the clock. */
  get isHeld(): boolean {
    return !this.#unlocking && !this.#lost && this.#lease.isHeld;
  }

  /**
   * Re-reads the clock and throws when the lock is not held any more. Call it right before a write that must not happen twice.
   *
   * @throws LockLostError
   */
  assertHeld(): void {
    if (this.isHeld) return;
    throw this.lost ?? this.#unlocked();
  }

  /**
   * Renews the lease now, with the same length or another, and lets the watchdog go on with that one.
   * It never ends sooner than it would have.
   *
   * @param lease smallest `'100ms'`
   * @throws LockLostError when the lock is not ours any more
   * @throws LockUnavailableError when the store does not answer; the lock goes on until its lease ends
   */
  async extend(lease?: Duration): Promise<void> {
    this.assertHeld();
    const leaseMs = lease === undefined ? this.#lease.leaseMs : durationMs('lease', lease, { min: SMALLEST_LEASE_MS });
    await this.#giver.extend(this.#lease, leaseMs);
    this.assertHeld();
  }

  /**
   * Frees the key. Safe in a `finally`: it never rejects, and calling it again does nothing.
   * If Redis can't be reached, the key is freed in the background, at the latest when its lease ends.
   *
   * @returns false when the lock had been lost before
   */
  unlock(): Promise<boolean> {
    this.#unlocking ??= this.#end();
    return this.#unlocking;
  }

  /** So that `await using lock = await locks.lock(key)` unlocks at the end of the block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock();
  }

  /** How it was lost, if it was. @internal */
  get lost(): LockLostError | undefined {
    return this.#lost ?? this.#lease.lost;
  }

  /** Where calls nested in this lock queue, one at a time for each key. @internal */
  get inner(): KeyGate {
    return (this.#inner ??= new KeyGate());
  }

  /** @internal */
  get lease(): Lease {
    return this.#lease;
  }

  #end(): Promise<boolean> {
    if (this.outer) this.outer.#nested?.delete(this);
    this.#loseNested();
    return this.#giver.unlock(this);
  }

  #loseNested(): void {
    for (const nested of this.#nested ?? []) {
      nested.#lost = nested.#unlocked();
      nested.#outerEnded?.abort(nested.#lost);
      nested.#loseNested();
    }
    this.#inner?.open();
  }

  #nestedSignal(): AbortSignal {
    this.#outerEnded = new AbortController();
    if (this.#lost) this.#outerEnded.abort(this.#lost);
    return AbortSignal.any([this.#lease.signal, this.#outerEnded.signal]);
  }

  #unlocked(): LockLostError {
    return new LockLostError({ keys: this.#keys, reason: 'unlocked', heldMs: Date.now() - this.#acquiredAt });
  }
}
