import { LockLostError, type LostReason } from '../errors/lock-lost.error.js';
import { now } from '../clock/deadline.js';
import { durationMs, type Duration } from '../clock/duration.js';
import { KeyGate } from './key-gate.js';
import type { Lease } from './lease.js';
import { SMALLEST_LEASE_MS } from './lock-options.js';

/** What a lock asks of whoever gave it. */
export interface LockGiver {
  extend(lock: Lock, leaseMs: number): Promise<void>;
  unlock(lock: Lock): Promise<boolean>;
}

interface LockParts {
  readonly keys: readonly string[];
  readonly fence: number;
  readonly lease: Lease;
  readonly giver: LockGiver;
  /** The lock of the outer call that this one is nested in. */
  readonly outer?: Lock;
}

/** What a caller holds while it is inside. */
export class Lock implements AsyncDisposable {
  /** All keys of this lock, without duplicates, in the order they are taken. */
  readonly keys: readonly string[];
  /** Larger than the fence of every earlier holder of the key. Send it to the database and let it refuse smaller ones. */
  readonly fence: number;
  /** @internal */
  readonly lease: Lease;
  /** The lock of the outer call that this one is nested in. @internal */
  readonly outer: Lock | undefined;
  readonly #giver: LockGiver;
  readonly #acquiredAt = Date.now();
  #ended = false;
  #unlocking: Promise<boolean> | undefined;
  #lost: LockLostError | undefined;
  /** Made when first asked for: most work never looks. */
  #controller: AbortController | undefined;
  #inner: KeyGate | undefined;
  #nested: Set<Lock> | undefined;

  /** @internal */
  constructor({ keys, fence, lease, giver, outer }: LockParts) {
    this.keys = keys;
    this.fence = fence;
    this.lease = lease;
    this.outer = outer;
    this.#giver = giver;
    if (outer) (outer.#nested ??= new Set()).add(this);
  }

  /** The key; of several, the first in their order. */
  get key(): string {
    return this.keys[0]!;
  }

  /** The owner id that stands in Redis under the key while this lock is held. */
  get token(): string {
    return this.lease.token;
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
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#lost) this.#controller.abort(this.#lost);
    }
    return this.#controller.signal;
  }

  /** How long the lock is still good for if nobody renews it, in ms. `0` once it is unlocked or lost. */
  remaining(): number {
    return this.isHeld ? this.lease.endsAt - now() : 0;
  }

  /** Whether it is held at this very moment. Reads the clock. */
  get isHeld(): boolean {
    return !this.#ended && !this.#lost && this.lease.isHeld;
  }

  /**
   * Re-reads the clock and throws when the lock is not held any more. Call it right before a write that must not happen twice.
   *
   * @throws LockLostError
   */
  assertHeld(): void {
    if (this.isHeld) return;
    throw this.#lost ?? this.#error('unlocked');
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
    const leaseMs = lease === undefined ? this.lease.leaseMs : durationMs('lease', lease, { min: SMALLEST_LEASE_MS });
    await this.#giver.extend(this, leaseMs);
    this.assertHeld();
  }

  /**
   * Frees the key. Safe in a `finally`: it never rejects, and calling it again does nothing.
   * If Redis can't be reached, the key is freed in the background, at the latest when its lease ends.
   *
   * @returns false when the lock had been lost before
   */
  unlock(): Promise<boolean> {
    return (this.#unlocking ??= this.#end());
  }

  /** So that `await using lock = await locks.lock(key)` unlocks at the end of the block. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock();
  }

  /** How it was lost, if it was. @internal */
  get lost(): LockLostError | undefined {
    return this.#lost;
  }

  /** Notes the loss, for the locks nested in it too, and aborts their signals. @internal */
  lose(reason: LostReason): void {
    if (this.#lost) return;
    this.#lost = this.#error(reason);
    this.#controller?.abort(this.#lost);
    this.#loseNested(reason);
  }

  /** Where calls nested in this lock queue, one at a time for each key. @internal */
  get inner(): KeyGate {
    return (this.#inner ??= new KeyGate());
  }

  #end(): Promise<boolean> {
    this.#ended = true;
    if (this.outer) this.outer.#nested?.delete(this);
    this.#unlocking = this.#giver.unlock(this);
    // Last, because it tells the user's own listeners.
    this.#loseNested('unlocked');
    return this.#unlocking;
  }

  #loseNested(reason: LostReason): void {
    for (const nested of this.#nested ?? []) nested.lose(reason);
    this.#inner?.open();
  }

  #error(reason: LostReason): LockLostError {
    return new LockLostError({ keys: this.keys, reason, heldMs: Date.now() - this.#acquiredAt });
  }
}
