import { LockLostError, type LostReason } from '../errors/lock-lost.error.js';
import type { Renewal } from '../store/lock-store.js';
import { now, roundedDown } from '../clock/deadline.js';

/** What our clock and the server's may differ by over one lease: 1 % and 2 ms, as in the Redlock algorithm. */
const driftMs = (leaseMs: number): number => leaseMs * 0.01 + 2;

/** Ends are rounded down to this part of the lease. */
const END_STEP = 1 / 256;

export interface LeaseTerms {
  readonly leaseMs: number;
  readonly watchdog: boolean;
  readonly maxHoldMs: number;
}

/**
 * One grant of the store and the time it is good for, on our own monotonic clock. It ends once: released or lost.
 *
 * It is good until the moment *before its last confirmed command was sent* plus the lease, less the drift:
 * the server can't have started its own count earlier than that.
 */
export class Lease implements Renewal {
  readonly keys: readonly string[];
  readonly token: string;
  readonly fence: number;
  readonly startedAt: number;
  /** Until when the watchdog renews it. */
  readonly renewUntil: number;
  /** When the watchdog looks at it next; the watchdog's own note. */
  dueAt = Infinity;
  /** Runs at once when the lease is lost, before `signal` aborts. */
  onLost: () => void = () => undefined;

  /** What the next renewal asks for. */
  leaseMs: number;
  #endsAt = -Infinity;
  #state: 'held' | 'releasing' | 'lost' = 'held';
  #lost: LockLostError | undefined;
  #controller: AbortController | undefined;

  constructor(keys: readonly string[], token: string, fence: number, sentAt: number, terms: LeaseTerms) {
    this.keys = keys;
    this.token = token;
    this.fence = fence;
    this.startedAt = sentAt;
    this.renewUntil = terms.watchdog ? sentAt + terms.maxHoldMs : -Infinity;
    this.leaseMs = terms.leaseMs;
    this.confirm(sentAt, terms.leaseMs);
  }

  /** When it ends if nobody renews it. */
  get endsAt(): number {
    return this.#endsAt;
  }

  /** Whether it is held this very moment. Reads the clock, so code that was stalled sees the loss first. */
  get isHeld(): boolean {
    if (this.#state === 'held' && now() >= this.#endsAt) this.lose('expired');
    return this.#state === 'held';
  }

  get lost(): LockLostError | undefined {
    return this.#lost;
  }

  /** Aborts with `LockLostError` when the lease is lost. Made when first asked for: most work never looks. */
  get signal(): AbortSignal {
    if (!this.#controller) {
      this.#controller = new AbortController();
      if (this.#lost) this.#controller.abort(this.#lost);
    }
    return this.#controller.signal;
  }

  /** The store confirmed a command that was sent at `sentAt`. Answers may come out of order: it never ends sooner than before. */
  confirm(sentAt: number, leaseMs: number): void {
    this.#endsAt = Math.max(this.#endsAt, roundedDown(sentAt + leaseMs - driftMs(leaseMs), leaseMs * END_STEP));
  }

  lose(reason: LostReason): void {
    if (this.#state !== 'held') return;
    this.#state = 'lost';
    this.#note(reason);
    this.onLost();
    this.#controller?.abort(this.#lost);
  }

  /** Ends it on purpose. Answers false when it had been lost before. */
  startRelease(): boolean {
    if (!this.isHeld) return false;
    this.#state = 'releasing';
    return true;
  }

  /** The store said, on release, that the keys were not ours any more. */
  foundTaken(): void {
    this.#note('taken');
    this.#controller?.abort(this.#lost);
  }

  #note(reason: LostReason): void {
    this.#lost = new LockLostError({ keys: this.keys, reason, heldMs: now() - this.startedAt });
  }
}
