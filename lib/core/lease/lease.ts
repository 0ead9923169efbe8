import { now, roundedDown } from '../../clock/deadline.js';
import type { LostReason, ForcedUnlock } from '../../errors/lock-lost.error.js';
import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { LockDetails, OwnedLock, Sharing } from '../../store/lock-store.js';
import type { CallSite } from '../request/call-site.js';
import { canStartWith, turnsOf, type LockRequest } from '../request/lock-request.js';
import type { HandOffRun } from './hand-off-run.js';

/** How far our clock and the server's may drift apart over one lease: 1 % and 2 ms, as in the Redlock algorithm. */
const driftMs = (leaseMs: number): number => leaseMs * 0.01 + 2;

/** Ends are rounded down to this part of the lease. */
const END_STEP = 1 / 256;

/** The last renewal of a lease that failed. Few have one, so it takes no room in the others. */
const failedRenewals = new WeakMap<Lease, { readonly sentAt: number; readonly error: LockUnavailableError }>();

/** What the lease needs to know of the lock of the caller that holds it. */
interface Holder {
  readonly details: LockDetails;
  /** By the monotonic clock, which nobody sets. */
  readonly heldSince: number;
  /** Measures how long it is held; undefined without `warnAfter`. */
  readonly holdTime: { readonly isOver: boolean } | undefined;
  lose(reason: LostReason, forced?: ForcedUnlock): void;
  /**
   * @param marginMs how much of the lease was left without this renewal
   * @param leaseMs how long that lease was
   */
  reportRenewal(marginMs: number, leaseMs: number): void;
}

/**
 * What the process holds in the store: keys under a token, and how long they are good for on our own monotonic clock.
 * It ends once: released or lost. Until then it may go from caller to caller, one holder at a time.
 *
 * It is good until the moment *before its last confirmed command was sent* plus the lease, less the drift: the server
 * can't have started its own count earlier than that.
 */
export class Lease implements OwnedLock {
  readonly keys: readonly string[];
  readonly token: string;
  /**
   * The hand-offs inside this process. Undefined before the first one, and for a lock that always goes through the
   * store.
   */
  handOffRun: HandOffRun | undefined;
  /** How many fences came with it; one, if it is never handed off. */
  readonly fenceCount: number;
  /** Changes when a writer becomes a reader. */
  sharing: Sharing;
  /** The keys for which its holder has the turn in this process. */
  turns: readonly string[];
  /** How many calls nested in a reader write now. */
  writers = 0;
  /** How often the store was asked to make the reader the writer: the number of the last such upgrade. */
  upgrades = 0;
  /** The upgrade by which the store made it the writer, for as long as calls nested in it write; 0: none. */
  upgrade = 0;
  /** Until when the watchdog renews it. */
  renewUntil = -Infinity;
  /** Whether its token may have had the lock before, and lost it: a message about that loss must not end this lease. */
  isReacquired = false;
  /**
   * Whether its token was given out. From then on the token names the present holder, so the lock is not handed off in
   * this process.
   */
  isTokenExposed = false;
  /** When the watchdog checks it next. Only the watchdog uses this. */
  dueAt = 0;
  /** Called at once when the lease is lost, before its holder hears of it. */
  onLost: (lease: Lease, reason: LostReason) => void = () => undefined;

  /** What the next renewal asks for. */
  leaseMs: number;
  /** The longest that the store was ever asked for: it may keep the keys for as long, whatever it has confirmed. */
  longestMs: number;
  #holder: Holder | undefined;
  #site: CallSite | undefined;
  #confirmedAt = 0;
  /** When the renewal that lasts longest of those that the store has not confirmed would end; 0: it has all. */
  #unconfirmedUntil = 0;
  #repliedAt = 0;
  #endsAt = 0;
  #confirmedMs = 0;
  #keepUntil = 0;
  #state: 'held' | 'releasing' | 'lost' = 'held';

  /** @param grantedMs how long the store gives it at first: as long as the request asks for, or less */
  constructor(
    request: LockRequest,
    token: string,
    fenceCount: number,
    sentAt: number,
    grantedMs: number = request.leaseMs,
  ) {
    this.keys = request.keys;
    this.token = token;
    this.fenceCount = fenceCount;
    this.sharing = request.sharing;
    this.turns = turnsOf(request);
    this.keepFor(request.atLeastMs);
    this.leaseMs = this.longestMs = request.leaseMs;
    this.confirm(sentAt, grantedMs);
  }

  /** When the store last confirmed it: when that reply arrived. */
  get repliedAt(): number {
    return this.#repliedAt;
  }

  /** When the last command was sent that the store confirmed. */
  get confirmedAt(): number {
    return this.#confirmedAt;
  }

  /** When it ends if nobody renews it. */
  get endsAt(): number {
    return this.#endsAt;
  }

  /** Why the last renewal failed; undefined if it was confirmed. */
  get renewalError(): LockUnavailableError | undefined {
    const failed = failedRenewals.get(this);
    return failed && failed.sentAt > this.#confirmedAt ? failed.error : undefined;
  }

  /** How long it was confirmed for. Less than `leaseMs` when it was handed over and has not been renewed yet. */
  get confirmedMs(): number {
    return this.#confirmedMs;
  }

  /** Notes that the store is asked to renew it. */
  renewalSent(sentAt: number, leaseMs: number): void {
    this.#unconfirmedUntil = Math.max(this.#unconfirmedUntil, sentAt + leaseMs);
  }

  /** Whether the store may have renewed it for longer, or later, than it has confirmed. */
  get mayBeRenewed(): boolean {
    return this.#unconfirmedUntil > 0;
  }

  /** Makes the keys stay for at least that long from now on, even when they are given back sooner. */
  keepFor(atLeastMs: number): void {
    if (atLeastMs > 0) this.#keepUntil = Math.max(this.#keepUntil, now() + atLeastMs);
  }

  /** Lets the keys go at once when they are given back. */
  keepNoLonger(): void {
    this.#keepUntil = 0;
  }

  /** How long the keys have to stay if they are given back now, in ms. */
  get keepMs(): number {
    return this.#keepUntil === 0 ? 0 : Math.max(0, Math.ceil(this.#keepUntil - now()));
  }

  /** What is known of its present holder. */
  get details(): LockDetails | undefined {
    return this.#holder?.details;
  }

  /** The method that the call of its present holder stands on. */
  get site(): CallSite | undefined {
    return this.#site;
  }

  /** Whether its present holder has it for longer than its `warnAfter`. */
  get isOverdue(): boolean {
    return this.#holder?.holdTime?.isOver ?? false;
  }

  /** Since when its present holder has it, by the monotonic clock. */
  get heldSince(): number {
    return this.#holder?.heldSince ?? now();
  }

  /** Whether it is held, without a consequence if it is not. */
  get isLive(): boolean {
    return this.#state === 'held' && now() < this.#endsAt && this.#holder !== undefined;
  }

  /** Whether its token names its present holder only, because it is not handed off in this process. */
  get isTokenOfOne(): boolean {
    return this.isTokenExposed || this.fenceCount === 1 || this.sharing !== 'exclusive';
  }

  /** Gives the token to somebody outside of the library. */
  exposeToken(): string {
    this.isTokenExposed = true;
    return this.token;
  }

  /** Gives what is known of the present holder to somebody who knows the token. */
  exposeDetails(): LockDetails | undefined {
    this.isTokenExposed = true;
    return this.details;
  }

  /** Whether it is held at this very moment. Reads the clock, so code that was stalled sees the loss first. */
  get isHeld(): boolean {
    if (this.#state === 'held' && now() >= this.#endsAt) this.lose('expired');
    return this.#state === 'held';
  }

  /**
   * Whether it can be handed off to a caller as it is: the caller asks for the same lease, and enough of it is left to
   * start with. If the caller's process dies, the store must not keep the key for longer than that.
   */
  isGoodFor(request: LockRequest): boolean {
    return (
      request.leaseMs === this.leaseMs &&
      request.leaseMs === this.longestMs &&
      canStartWith(this.#confirmedMs, request) &&
      now() < this.#endsAt - this.#confirmedMs / 2
    );
  }

  /** Makes a caller its holder. */
  setHolder(holder: Holder, { site, watchdog, maxHoldMs }: LockRequest): void {
    this.#holder = holder;
    this.#site = site;
    this.renewUntil = watchdog ? now() + maxHoldMs : -Infinity;
  }

  /**
   * Notes that the store confirmed a command that was sent at `sentAt`. Replies may arrive out of order: the lease
   * never ends sooner than before.
   */
  confirm(sentAt: number, leaseMs: number): void {
    const repliedAt = now();
    const marginMs = this.#endsAt - repliedAt;
    const renewedMs = this.#confirmedMs;
    this.#repliedAt = Math.floor(repliedAt);
    this.#confirmedAt = Math.max(this.#confirmedAt, Math.floor(sentAt));
    if (sentAt + leaseMs >= this.#unconfirmedUntil) this.#unconfirmedUntil = 0;
    const endsAt = roundedDown(sentAt + leaseMs - driftMs(leaseMs), leaseMs * END_STEP);
    if (endsAt >= this.#endsAt) {
      this.#endsAt = endsAt;
      this.#confirmedMs = leaseMs;
    }
    this.#holder?.reportRenewal(marginMs, renewedMs);
  }

  /** Notes that a renewal that was sent at `sentAt` failed. */
  renewalFailed(sentAt: number, error: LockUnavailableError): void {
    failedRenewals.set(this, { sentAt, error });
  }

  /**
   * Whether it no longer relies on an upgrade that a renewal named: that one may have found a reader, and said that the
   * writer is gone.
   */
  hasEndedWriting(upgrade: number): boolean {
    return upgrade > 0 && this.upgrade !== upgrade;
  }

  /** Tells its holder to stop. The watchdog goes on renewing it until the holder has left. */
  stopHolder(reason: LostReason): void {
    if (this.#state === 'held') this.#holder?.lose(reason);
  }

  /**
   * Ends it because it is lost, and tells its holder. One that is over has expired: if the process stood still, the
   * store may say that it is gone before a timer here runs.
   */
  lose(reason: LostReason, forced?: ForcedUnlock): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    const hasExpired = reason === 'taken' && !forced && now() >= this.#endsAt;
    const why = hasExpired ? 'expired' : reason;
    this.onLost(this, why);
    this.#holder?.lose(why, forced);
  }

  /** Ends it on purpose. */
  startRelease(): void {
    this.#state = 'releasing';
  }
}
