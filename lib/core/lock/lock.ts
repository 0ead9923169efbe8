import { LockOptionsError } from '../../errors/lock-options.error.js';
import type { ForcedUnlock, LockDetails, Sharing } from '../../store/lock-store.js';
import { LockLostError, type LostReason } from '../../errors/lock-lost.error.js';
import { quoted } from '../../errors/messages.js';
import { now } from '../../clock/deadline.js';
import { durationMs, type Duration } from '../../clock/duration.js';
import { LocalQueue } from '../waiting/local-queue.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseChanges } from '../lease/lease-changes.js';
import type { HeldNews } from './lock-event.js';
import type { LockEvents } from './lock-events.js';
import { SMALLEST_LEASE_MS, type LockMode } from '../request/lock-options.js';
import type { LockRequest } from '../request/lock-request.js';
import { OwnedSignal } from './owned-signal.js';

/** What a lock asks of whoever gave it. */
export interface LockIssuer {
  readonly changes: LeaseChanges;
  readonly events: LockEvents;
  unlock(lock: Lock): Promise<boolean>;
}

/** What a lock has to do with the locks of the outer calls that it is nested in. */
interface Nesting {
  readonly parents: readonly Lock[];
  /** Whether it reads a key together with siblings. */
  isShared(key: string): boolean;
  /** Lets siblings go on. */
  readonly leave: () => void;
}

interface LockParts {
  readonly keys: readonly string[];
  readonly fence: number;
  /** What it is held by: one, or those of all locks that it is nested in. */
  readonly leases: readonly Lease[];
  readonly giver: LockIssuer;
  readonly request: Pick<LockRequest, 'mode' | 'sharing' | 'label'>;
  readonly nesting?: Nesting;
}

/** How a lock is held: as it was asked for, or as a permit of a semaphore. */
export type HeldMode = LockMode | 'permit';

/** What a caller holds while it is inside. */
export class Lock implements AsyncDisposable {
  /** Larger than the fence of every earlier holder of the key. Send it to the database and let it refuse smaller ones. */
  readonly fence: number;
  // Private, so that nobody who copies or prints what a lock has sends a token or a key to somebody.
  readonly #keys: readonly string[];
  readonly #leases: readonly Lease[];
  readonly #nesting: Nesting | undefined;
  readonly #label: string | undefined;
  #mode: HeldMode;
  readonly #giver: LockIssuer;
  readonly #acquiredAt = Date.now();
  #ended = false;
  /** The latest who has heard of this lock, of those who hear of events; `0`: nobody. */
  #heardBy = 0;
  #unlocking: Promise<boolean> | undefined;
  #lost: LockLostError | undefined;
  /** Made when first asked for: most work never looks. */
  #signal: OwnedSignal | undefined;
  #inner: LocalQueue | undefined;
  #nested: Set<Lock> | undefined;
  #readers: Set<Lock> | undefined;

  /** @internal */
  constructor({ keys, fence, leases, giver, request, nesting }: LockParts) {
    this.#keys = keys;
    this.fence = fence;
    this.#leases = leases;
    this.#nesting = nesting;
    this.#giver = giver;
    this.#label = request.label;
    this.#mode = request.sharing.startsWith('permits') ? 'permit' : request.mode;
    if (nesting) for (const outer of nesting.parents) (outer.#nested ??= new Set()).add(this);
  }

  /** All keys of this lock, without duplicates, in the order they are taken. */
  get keys(): readonly string[] {
    return this.#keys;
  }

  /** The key; of several, the first in their order. */
  get key(): string {
    return this.keys[0]!;
  }

  /**
   * The owner id that stands in Redis under the key while this lock is held. Read it while you hold the lock: it is nobody else's then, and `forceUnlock` can
   * be told to take this lock only.
   */
  get token(): string {
    return this.leases[0]!.tellToken();
  }

  /** As it was asked for; `'permit'` for one of a semaphore; `'read'` after a `downgrade()`. */
  get mode(): HeldMode {
    return this.#mode;
  }

  get acquiredAt(): Date {
    return new Date(this.#acquiredAt);
  }

  /**
   * Aborts with `LockLostError` when the lock is lost, at the latest when the lease ends by our own monotonic clock,
   * even if Redis is gone. Does not abort on `unlock()`, but that of a nested lock does when its outer call ends first.
   * Listeners run in the async context of whoever asked for the signal first.
   */
  get signal(): AbortSignal {
    void this.isHeld;
    if (!this.#signal) {
      this.#signal = new OwnedSignal();
      if (this.#lost) this.#signal.abort(this.#lost);
    }
    return this.#signal.signal;
  }

  /**
   * How long the lock is still good for if nobody renews it, in ms. `0` once it is unlocked or lost. One that was waited for lasts 5 s at most
   * until the watchdog renews it, a quarter of a second after it was handed over.
   */
  remaining(): number {
    return this.isHeld ? this.#endsAt - now() : 0;
  }

  /** Whether it is held at this very moment. Reads the clock. */
  get isHeld(): boolean {
    if (this.#ended || this.#lost) return false;
    for (const lease of this.leases) if (!lease.isHeld) return false;
    return true;
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
    const leaseMs = lease === undefined ? undefined : durationMs('lease', lease, { min: SMALLEST_LEASE_MS });
    await Promise.all(this.leases.map((lease) => this.#giver.changes.extend(lease, leaseMs ?? lease.leaseMs)));
    this.assertHeld();
  }

  /**
   * Makes a writer a reader, without letting another writer in between: readers may come in from now on. A reader stays one.
   *
   * @throws LockLostError when the lock is not ours any more
   * @throws LockOptionsError for a permit, or while nested calls are inside
   * @throws LockUnavailableError when the store does not answer
   */
  async downgrade(): Promise<void> {
    this.assertHeld();
    if (this.#mode === 'read') return;
    if (this.#mode === 'permit')
      throw this.#notFor((lock) => `${lock} is a permit of a semaphore: there is nothing to downgrade.`);
    if (this.nesting || this.#nested?.size) {
      throw this.#notFor(
        (lock) =>
          `${lock} is nested in another call, or others are nested in it: downgrade the outermost, when they have ended.`,
      );
    }
    await this.#giver.changes.downgrade(this.leases[0]!);
    this.#mode = 'read';
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

  /** What a client gets that a lock is sent to by mistake: not the token, and no key, which can name a customer. */
  toJSON(): { readonly mode: HeldMode; readonly fence: number; readonly acquiredAt: Date; readonly isHeld: boolean } {
    const { mode, fence, acquiredAt, isHeld } = this;
    return { mode, fence, acquiredAt, isHeld };
  }

  /** What logs get: the keys too, but no token. @internal */
  [Symbol.for('nodejs.util.inspect.custom')](
    depth: number,
    options: object,
    inspect: (value: object, options: object) => string,
  ): string {
    return depth < 0 ? '[Lock]' : `Lock ${inspect({ keys: this.keys, ...this.toJSON() }, options)}`;
  }

  /** @internal */
  get leases(): readonly Lease[] {
    return this.#leases;
  }

  /** Set when it is nested in outer calls. @internal */
  get nesting(): Nesting | undefined {
    return this.#nesting;
  }

  /** How it was lost, if it was. @internal */
  get lost(): LockLostError | undefined {
    return this.#lost;
  }

  /** It was told of: from here on it is told what becomes of it. @internal */
  announce(latest: number): void {
    this.#heardBy = latest;
    if (this.#lost) this.#tell({ type: 'lost', reason: this.#lost.reason, forced: this.#lost.forced });
  }

  /** The store confirmed that it goes on. @internal */
  renewed(): void {
    if (this.#heardBy > 0 && !this.#ended && !this.#lost)
      this.#tell({ type: 'renewed', remainingMs: this.#endsAt - now() });
  }

  /** Notes the loss, for the locks nested in it too, and aborts their signals. @internal */
  lose(reason: LostReason, forced?: ForcedUnlock): void {
    if (this.#lost) return;
    this.#lost = this.#error(reason, forced);
    this.#signal?.abort(this.#lost);
    this.#loseNested(reason, forced);
    this.#tell({ type: 'lost', reason, forced });
  }

  /** How it lets calls that are nested in it share a key of it. @internal */
  sharing(key: string): Sharing {
    if (!this.nesting) return this.leases[0]!.sharing;
    const outer = this.#outerOf(key).sharing(key);
    // One that writes, nested in a reader, has the key for itself.
    return outer === 'read' ? 'exclusive' : outer;
  }

  /** Where those queue who are nested in this lock: readers who share a key do so with the siblings of the call they are in. @internal */
  queueOwner(key: string): Lock {
    if (!this.nesting?.isShared(key)) return this;
    return this.#outerOf(key).queueOwner(key);
  }

  /** Those who read together, nested in this lock. @internal */
  get readers(): Set<Lock> {
    return (this.#readers ??= new Set());
  }

  /** Whether it is that lock, or nested in it. @internal */
  isWithin(other: Lock): boolean {
    return this === other || (this.nesting?.parents.some((outer) => outer.isWithin(other)) ?? false);
  }

  /** What people who inspect the key get to know. @internal */
  get details(): LockDetails {
    return { fence: this.fence, acquiredAt: this.#acquiredAt, label: this.#label };
  }

  /** Where calls nested in this lock queue, one at a time for each key. @internal */
  get inner(): LocalQueue {
    return (this.#inner ??= new LocalQueue());
  }

  #outerOf(key: string): Lock {
    return this.nesting!.parents.find((outer) => outer.keys.includes(key))!;
  }

  get #endsAt(): number {
    return Math.min(...this.leases.map(({ endsAt }) => endsAt));
  }

  #end(): Promise<boolean> {
    this.#ended = true;
    for (const outer of this.nesting?.parents ?? []) outer.#nested?.delete(this);
    this.#unlocking = this.#giver.unlock(this);
    if (this.#heardBy > 0) void this.#unlocking.then((ours) => ours && this.#tell({ type: 'released' }));
    // Last, because it tells the user's own listeners.
    this.#loseNested('unlocked');
    return this.#unlocking;
  }

  #loseNested(reason: LostReason, forced?: ForcedUnlock): void {
    for (const nested of this.#nested ?? []) nested.lose(reason, forced);
    this.#inner?.open();
  }

  #tell(news: HeldNews): void {
    if (this.#heardBy === 0) return;
    const { keys, fence, nesting } = this;
    this.#giver.events.tell(
      {
        ...news,
        keys,
        label: this.#label,
        fence,
        nested: nesting !== undefined,
        heldMs: Date.now() - this.#acquiredAt,
      },
      this.#heardBy,
    );
  }

  #notFor(text: (lock: string) => string): LockOptionsError {
    return new LockOptionsError(text('The lock'), text(`The lock ${quoted(this.key)}`));
  }

  #error(reason: LostReason, forced?: ForcedUnlock): LockLostError {
    return new LockLostError({
      keys: this.keys,
      label: this.#label,
      reason,
      forced,
      heldMs: Date.now() - this.#acquiredAt,
    });
  }
}
