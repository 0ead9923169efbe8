import { now, roundedDown } from '../../clock/deadline.js';
import type { LostReason } from '../../errors/lock-lost.error.js';
import type { ForcedUnlock, LockDetails, OwnedLock, Sharing } from '../../store/lock-store.js';
import type { HandOffRun } from './hand-off-run.js';
import { canStartWith, turnsOf, type LockRequest } from '../request/lock-request.js';

/** What our clock and the server's may differ by over one lease: 1 % and 2 ms, as in the Redlock algorithm. */
const driftMs = (leaseMs: number): number => leaseMs * 0.01 + 2;

/** Ends are rounded down to this part of the lease. */
const END_STEP = 1 / 256;

/** Who is inside by a lease, and hears when it is lost. */
interface Holder {
  readonly details: LockDetails;
  lose(reason: LostReason, forced?: ForcedUnlock): void;
  renewed(): void;
}

/**
 * What the process holds in the store: keys under a token, and the time they are good for on our own monotonic clock. It ends
 * once: released or lost. Until then it may go from caller to caller, one inside at a time.
 *
 * It is good until the moment *before its last confirmed command was sent* plus the lease, less the drift:
 * the server can't have started its own count earlier than that.
 */
export class Lease implements OwnedLock {
  readonly keys: readonly string[];
  readonly token: string;
  /** Hand-offs inside this process; none yet, or none ever for a lock that always goes through the store. */
  handOffRun: HandOffRun | undefined;
  /** How many fences it came with; one, if it is not handed on. */
  readonly fenceCount: number;
  /** Changes when a writer becomes a reader. */
  sharing: Sharing;
  /** For which of its keys its holder has its turn in this process. */
  readonly turns: readonly string[];
  /** Calls nested in a reader that write now. */
  writers = 0;
  /** How often the store was asked to make the reader the writer: the number of the last such upgrade. */
  upgrades = 0;
  /** Until when the watchdog renews it. */
  renewUntil = -Infinity;
  /** Whether its token may have had the lock before, and lost it: who hears of that loss now must not take it for a new one. */
  isRegained = false;
  /** Whether somebody was told its token: it names the present holder from then on, so the lock is not handed on in this process. */
  isNamed = false;
  /** When the watchdog looks at it next; the watchdog's own note. */
  dueAt = 0;
  /** Runs at once when the lease is lost, before its holder hears of it. */
  onLost: (lease: Lease) => void = () => undefined;

  /** What the next renewal asks for. */
  leaseMs: number;
  #holder: Holder | undefined;
  #confirmedAt = 0;
  #heardAt = 0;
  #endsAt = 0;
  #lastsMs = 0;
  #keepUntil = 0;
  #state: 'held' | 'releasing' | 'lost' = 'held';

  /** @param lastsMs how long the store gives it at first: what was asked for, or less */
  constructor(request: LockRequest, token: string, fenceCount: number, sentAt: number, lastsMs = request.leaseMs) {
    this.keys = request.keys;
    this.token = token;
    this.fenceCount = fenceCount;
    this.sharing = request.sharing;
    this.turns = turnsOf(request);
    this.keepFor(request.atLeastMs);
    this.leaseMs = request.leaseMs;
    this.confirm(sentAt, lastsMs);
  }

  /** When the store last said that it is ours. */
  get heardAt(): number {
    return this.#heardAt;
  }

  /** When the last command was sent that the store confirmed. */
  get confirmedAt(): number {
    return this.#confirmedAt;
  }

  /** When it ends if nobody renews it. */
  get endsAt(): number {
    return this.#endsAt;
  }

  /** How long it was confirmed for. Less than its lease, when it was handed over and has not been renewed yet. */
  get lastsMs(): number {
    return this.#lastsMs;
  }

  /** Lets the key stay for so long from now on at least. */
  keepFor(atLeastMs: number): void {
    if (atLeastMs > 0) this.#keepUntil = Math.max(this.#keepUntil, now() + atLeastMs);
  }

  /** How long the key is to stay when it is given back now, in ms. */
  get keepMs(): number {
    return this.#keepUntil === 0 ? 0 : Math.max(0, Math.ceil(this.#keepUntil - now()));
  }

  /** What is known of who is inside. */
  get details(): LockDetails | undefined {
    return this.#holder?.details;
  }

  /** The token, for somebody outside of the library. */
  tellToken(): string {
    this.isNamed = true;
    return this.token;
  }

  /** What is known of who is inside, for somebody who knows the token. */
  describe(): LockDetails | undefined {
    this.isNamed = true;
    return this.details;
  }

  /** Whether it is held this very moment. Reads the clock, so code that was stalled sees the loss first. */
  get isHeld(): boolean {
    if (this.#state === 'held' && now() >= this.#endsAt) this.lose('expired');
    return this.#state === 'held';
  }

  /** Whether the caller may take it over as it stands: it asks for this lease, and enough of it is left to begin with. */
  isGoodFor(request: LockRequest): boolean {
    return (
      request.leaseMs === this.leaseMs &&
      canStartWith(this.#lastsMs, request) &&
      now() < this.#endsAt - this.#lastsMs / 2
    );
  }

  /** Lets somebody in. */
  admit(holder: Holder, { watchdog, maxHoldMs }: LockRequest): void {
    this.#holder = holder;
    this.renewUntil = watchdog ? now() + maxHoldMs : -Infinity;
  }

  /** The store confirmed a command that was sent at `sentAt`. Answers may come out of order: it never ends sooner than before. */
  confirm(sentAt: number, leaseMs: number): void {
    this.#heardAt = Math.floor(now());
    this.#confirmedAt = Math.max(this.#confirmedAt, Math.floor(sentAt));
    const endsAt = roundedDown(sentAt + leaseMs - driftMs(leaseMs), leaseMs * END_STEP);
    if (endsAt >= this.#endsAt) {
      this.#endsAt = endsAt;
      this.#lastsMs = leaseMs;
    }
    this.#holder?.renewed();
  }

  /** Tells its holder to stop. It is renewed as before until the holder has left. */
  abort(reason: LostReason): void {
    if (this.#state === 'held') this.#holder?.lose(reason);
  }

  lose(reason: LostReason, forced?: ForcedUnlock): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.onLost(this);
    this.#holder?.lose(reason, forced);
  }

  /** Ends it on purpose. */
  startRelease(): void {
    this.#state = 'releasing';
  }
}
