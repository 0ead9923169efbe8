import { LockOptionsError } from '../../errors/lock-options.error.js';
import type { ForcedUnlock, LockDetails } from '../../store/lock-store.js';
import { LockLostError, type LostReason } from '../../errors/lock-lost.error.js';
import { quoted } from '../../errors/messages.js';
import { now } from '../../clock/deadline.js';
import { durationMs, type Duration } from '../../clock/duration.js';
import type { Lease } from '../lease/lease.js';
import type { LeaseChanges } from '../lease/lease-changes.js';
import type { HeldNews } from './lock-event.js';
import type { Audience, LockEvents } from './lock-events.js';
import { HoldTime, type HoldTimes } from './hold-time.js';
import type { HoldTrace } from './hold-trace.js';
import { Nesting, type NestedIn } from './lock-nesting.js';
import type { CallSite } from '../request/call-site.js';
import type { HeldMode } from '../request/held-mode.js';
import { SMALLEST_LEASE_MS } from '../request/lock-options.js';
import type { LockRequest } from '../request/lock-request.js';
import { OwnedSignal } from './owned-signal.js';

/** Tells operators of single locks. */
export interface LockReports {
  /** The lock has been held for longer than its `warnAfter`. */
  overdue(lock: Lock, warnAfterMs: number): void;
  /** The lock was lost, because somebody released it by force. */
  takenByForce(lock: Lock, loss: LockLostError): void;
}

/** What a lock needs of whoever issued it. */
export interface LockIssuer {
  readonly changes: LeaseChanges;
  readonly events: LockEvents;
  readonly holdTimes: HoldTimes;
  readonly reports: LockReports;
  unlock(lock: Lock): Promise<boolean>;
}

interface LockParts {
  readonly keys: readonly string[];
  readonly fence: number;
  /** One; or those of all locks that it is nested in. */
  readonly leases: readonly Lease[];
  readonly issuer: LockIssuer;
  readonly request: Pick<LockRequest, 'mode' | 'sharing' | 'label' | 'site' | 'warnAfterMs'>;
  readonly nestedIn?: NestedIn<Lock>;
}

/** A lock that a caller holds while it is inside. */
export class Lock implements AsyncDisposable {
  /**
   * Larger than the fence of every earlier holder of the key. Send it to the database and let it refuse smaller ones.
   */
  readonly fence: number;
  /** Traces it, if somebody wants to know. @internal */
  trace: HoldTrace | undefined;
  /** Only of a lock with `warnAfter`. @internal */
  holdTime: HoldTime | undefined;
  // Private, so that nobody who copies or prints what a lock has sends a token or a key to somebody.
  readonly #keys: readonly string[];
  readonly #leases: readonly Lease[];
  readonly #label: string | undefined;
  readonly #site: CallSite | undefined;
  #mode: HeldMode;
  readonly #issuer: LockIssuer;
  readonly #acquiredAt = Date.now();
  /** The same on the monotonic clock, which nobody sets. @internal */
  readonly heldSince = now();
  #ended = false;
  /** The subscribers to events that were told about this lock. */
  #audience: Audience | undefined;
  #unlocking: Promise<boolean> | undefined;
  #loss: LockLostError | undefined;
  /** Made when first asked for: most work never looks. */
  #signal: OwnedSignal | undefined;
  /** Made when first asked for: most locks are not nested, nor are others in them. */
  #nesting: Nesting<Lock> | undefined;

  /** @internal */
  constructor({ keys, fence, leases, issuer, request, nestedIn }: LockParts) {
    this.#keys = keys;
    this.fence = fence;
    this.#leases = leases;
    this.#issuer = issuer;
    this.#label = request.label;
    this.#site = request.site;
    this.#mode = request.sharing.startsWith('permits') ? 'permit' : request.mode;
    if (nestedIn) this.#nesting = new Nesting<Lock>(this, nestedIn);
    if (request.warnAfterMs !== undefined) this.#measure(request.warnAfterMs);
  }

  /** All keys of this lock, without duplicates, in the order in which they are acquired. */
  get keys(): readonly string[] {
    return this.#keys;
  }

  /** The key; the first, if there are several. */
  get key(): string {
    return this.keys[0]!;
  }

  /**
   * The id of the owner, which Redis stores under the key while this lock is held. Read it while you hold the lock:
   * from then on it belongs to no other caller, so `forceUnlock` with this token releases only this lock.
   */
  get token(): string {
    return this.leases[0]!.exposeToken();
  }

  /** The mode of the call; `'permit'` for a semaphore; `'read'` after a `downgrade()`. */
  get mode(): HeldMode {
    return this.#mode;
  }

  get acquiredAt(): Date {
    return new Date(this.#acquiredAt);
  }

  /**
   * Aborts with `LockLostError` when the lock is lost: at the latest when the lease ends by the process's monotonic
   * clock, even if Redis is gone. Does not abort on `unlock()`. The signal of a nested lock also aborts when its parent
   * call ends first. Listeners run in the async context of the code that read the signal first.
   */
  get signal(): AbortSignal {
    void this.isHeld;
    if (!this.#signal) {
      this.#signal = new OwnedSignal();
      if (this.#loss) this.#signal.abort(this.#loss);
    }
    return this.#signal.signal;
  }

  /**
   * Returns how long the lock is still valid if nobody renews it, in ms; `0` once it is unlocked or lost. A lock that
   * was waited for lasts 5 s at most until the watchdog renews it, a quarter of a second after the hand-off.
   */
  remaining(): number {
    return this.isHeld ? this.#endsAt - now() : 0;
  }

  /** Whether the lock is held at this very moment. Reads the clock. */
  get isHeld(): boolean {
    if (this.#ended || this.#loss) return false;
    for (const lease of this.leases) if (!lease.isHeld) return false;
    return true;
  }

  /**
   * Reads the clock again, and throws when the lock is no longer held. Call it right before a write that must not
   * happen twice.
   *
   * @throws LockLostError
   */
  assertHeld(): void {
    if (!this.isHeld) throw this.#loss ?? this.#error('unlocked');
  }

  /**
   * Renews the lease now, with the same length or another, which the watchdog uses from then on.
   * The lock never ends sooner than it would have.
   *
   * @param lease smallest `'100ms'`
   * @throws LockLostError when the lock is lost
   * @throws LockUnavailableError when the store does not answer; the lock stays until its lease ends
   */
  async extend(lease?: Duration): Promise<void> {
    this.assertHeld();
    const leaseMs = lease === undefined ? undefined : durationMs('lease', lease, { min: SMALLEST_LEASE_MS });
    await Promise.all(this.leases.map((lease) => this.#issuer.changes.extend(lease, leaseMs ?? lease.leaseMs)));
    this.assertHeld();
  }

  /**
   * Makes a writer a reader, without letting another writer in between: readers may enter from now on. A reader stays a
   * reader.
   *
   * @throws LockLostError when the lock is lost
   * @throws LockOptionsError for a permit, or while nested calls are inside
   * @throws LockUnavailableError when the store does not answer. The lock is a reader from then on all the same, and
   *   the store is asked again until it answers
   */
  async downgrade(): Promise<void> {
    this.assertHeld();
    if (this.#mode === 'read') return;
    if (this.#mode === 'permit')
      throw this.#optionsError((lock) => `${lock} is a permit of a semaphore: there is nothing to downgrade.`);
    if (this.#nesting?.hasParents || this.#nesting?.hasChildren) {
      throw this.#optionsError(
        (lock) =>
          `${lock} is nested in another call, or others are nested in it: ` +
          'downgrade the outermost, when they have ended.',
      );
    }
    await this.#issuer.changes.downgrade(this.leases[0]!, () => (this.#mode = 'read'));
    this.assertHeld();
  }

  /**
   * Releases the key. Safe in a `finally`: it never rejects, and calling it again does nothing.
   * If Redis can't be reached, the key is released in the background, at the latest when its lease ends.
   *
   * @returns false when the lock was already lost
   */
  unlock(): Promise<boolean> {
    return (this.#unlocking ??= this.#end());
  }

  /** Unlocks at the end of a block: `await using lock = await locks.lock(key)`. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.unlock();
  }

  /**
   * Returns what is safe to send to a client, if a lock is sent by mistake: no token, and no key, which can name a
   * customer.
   */
  toJSON(): { readonly mode: HeldMode; readonly fence: number; readonly acquiredAt: Date; readonly isHeld: boolean } {
    const { mode, fence, acquiredAt, isHeld } = this;
    return { mode, fence, acquiredAt, isHeld };
  }

  /** Returns what logs show: the keys too, but no token. @internal */
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

  /** Its place among nested calls. @internal */
  get nesting(): Nesting<Lock> {
    return (this.#nesting ??= new Nesting<Lock>(this));
  }

  /** Whether it is nested in another call. @internal */
  get isNested(): boolean {
    return this.#nesting?.hasParents ?? false;
  }

  /** Whether the call that it is nested in has ended. @internal */
  get hasEndedWithParent(): boolean {
    return this.isNested && !this.isHeld;
  }

  /** How it was lost, if it was. @internal */
  get loss(): LockLostError | undefined {
    return this.#loss;
  }

  /** Notes that `acquired` was emitted: later events go to the same subscribers. @internal */
  noteAcquired(audience: Audience): void {
    this.#audience = audience;
    if (this.#loss) this.#emitLoss(this.#loss);
  }

  /** Emits that the store confirmed the lease. @internal */
  reportRenewal(marginMs: number, leaseMs: number): void {
    if (this.#audience && !this.#ended && !this.#loss)
      this.#emit({ type: 'renewed', remainingMs: this.#endsAt - now(), marginMs: Math.max(0, marginMs), leaseMs });
  }

  /** Notes the loss, for the locks nested in it too, and aborts their signals. @internal */
  lose(reason: LostReason, forced?: ForcedUnlock): void {
    const lost = (this.#nesting?.withNested ?? [this]).filter((lock) => !lock.#loss);
    for (const lock of lost) {
      lock.holdTime?.end();
      lock.#loss = lock.#error(reason, forced);
    }
    // First those inside: who hears of a loss may call `unlock()`, which would end them for that.
    for (const lock of lost.toReversed()) lock.#tellLoss(lock.#loss!);
  }

  #tellLoss(loss: LockLostError): void {
    this.#nesting?.lost(loss.reason);
    this.#signal?.abort(loss);
    this.#emitLoss(loss);
    if (loss.forced && !this.isNested) this.#issuer.reports.takenByForce(this, loss);
    this.trace?.end(loss);
  }

  /** What people who inspect the key get to know. @internal */
  get details(): LockDetails {
    const traceparent = this.trace?.traceparent;
    return { fence: this.fence, acquiredAt: this.#acquiredAt, label: this.#label, traceparent };
  }

  get #endsAt(): number {
    return Math.min(...this.leases.map(({ endsAt }) => endsAt));
  }

  /** Has it reported when it is held for longer than that, unless a lock that it is nested in is reported before. */
  #measure(warnAfterMs: number): void {
    if (this.#nesting && this.#nesting.overAt <= now() + warnAfterMs) return;
    this.holdTime = new HoldTime(warnAfterMs, this.#issuer.holdTimes, () => {
      this.#emit({ type: 'overdue', warnAfterMs, token: this.token });
      this.#issuer.reports.overdue(this, warnAfterMs);
    });
  }

  #end(): Promise<boolean> {
    this.#ended = true;
    this.holdTime?.end();
    this.#nesting?.detach();
    return this.#nesting?.hasChildren ? this.#endAfterChildren(this.#nesting) : this.#release();
  }

  /**
   * Ends the nested locks first, so that none is live beside the next holder. Their listeners may call `unlock()`
   * again.
   */
  #endAfterChildren(nesting: Nesting<Lock>): Promise<boolean> {
    let release!: () => void;
    const unlocking = (this.#unlocking = new Promise((resolve) => (release = () => resolve(this.#release()))));
    nesting.loseChildren('unlocked');
    release();
    return unlocking;
  }

  #release(): Promise<boolean> {
    const released = this.#issuer.unlock(this);
    if (this.#audience || this.trace) void released.then((ours) => this.#reportRelease(ours));
    this.#nesting?.loseChildren('unlocked');
    return released;
  }

  #emitLoss({ reason, forced }: LockLostError): void {
    // The token of a lock whose parent call has ended may be handed off to the next caller.
    this.#emit({ type: 'lost', reason, forced, token: reason === 'unlocked' ? undefined : this.#leases[0]!.token });
  }

  #reportRelease(ours: boolean): void {
    if (ours) this.#emit({ type: 'released' });
    this.trace?.end(this.#loss);
  }

  #emit(news: HeldNews): void {
    if (!this.#audience) return;
    const { id, latest } = this.#audience;
    // Not spread: V8 takes microseconds to spread into an object of this size.
    const event = Object.assign(
      {
        type: news.type,
        id,
        keys: this.keys,
        label: this.#label,
        method: this.#site?.method,
        template: this.#site?.template,
        mode: this.#mode === 'write' ? ('exclusive' as const) : this.#mode,
        fence: this.fence,
        nested: this.isNested,
        heldMs: Math.round(now() - this.heldSince),
      },
      news,
    );
    this.#issuer.events.emit(event, latest);
  }

  #optionsError(text: (lock: string) => string): LockOptionsError {
    return new LockOptionsError(text('The lock'), text(`The lock ${quoted(this.key)}`));
  }

  #error(reason: LostReason, forced?: ForcedUnlock): LockLostError {
    return new LockLostError({
      keys: this.keys,
      label: this.#label,
      reason,
      forced,
      renewalError: reason === 'expired' ? this.#leases.find((lease) => lease.renewalError)?.renewalError : undefined,
      heldMs: Math.round(now() - this.heldSince),
    });
  }
}
