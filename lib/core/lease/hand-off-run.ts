import { now } from '../../clock/deadline.js';
import type { Granted, LockStore } from '../../store/lock-store.js';
import type { Lease } from './lease.js';

/** How often, and for how long in ms, a lock may be handed on inside one process while other processes wait for it. */
const HAND_OFFS = 16;
const LONGEST_MS = 20;

/** New fences are asked for when this many are left, and at the latest this long after the store was last heard of, in ms. */
const FEW_FENCES = 16;
const SILENCE_MS = 250;

/** The same where other processes wait, so that the end is near. */
const LAST_FENCES = 2;

/**
 * A lock that stays in its process: it goes from caller to caller without a word to the store, each with a fence of its own
 * out of those that came with the grant. For a bounded time while other processes wait, without a bound while none does.
 *
 * The bounds are those of cohort locking (Dice, Marathe, Shavit: Lock Cohorting, 2012).
 */
export class HandOffRun {
  readonly #startedAt = now();
  #nextFence = 0;
  #fencesLeft = 0;
  #handOffs = 0;
  #contended = false;
  #heardAt = 0;
  #asking = false;

  /**
   * @param grant of the one who is inside
   * @param heardAt when the store said so
   */
  constructor(grant: Granted, heardAt: number) {
    this.#take(grant, heardAt);
    this.takeFence();
  }

  /** Whether it may be handed on once more. */
  get canHandOff(): boolean {
    return this.#fencesLeft > 0 && this.#isWithinBounds;
  }

  /**
   * Whether to ask the store for new fences, and whether others wait, while it goes on.
   *
   * @param othersFollow whether there is somebody for one more hand-off
   */
  needsRefill(othersFollow: boolean): boolean {
    if (this.#asking) return false;
    if (this.#contended) return othersFollow && this.#fencesLeft <= LAST_FENCES && this.#isWithinBounds;
    return this.#fencesLeft <= FEW_FENCES || now() > this.#heardAt + SILENCE_MS;
  }

  takeFence(): number {
    this.#fencesLeft--;
    this.#handOffs++;
    return this.#nextFence++;
  }

  /** Another process waits from now on. */
  markContended(): void {
    this.#contended = true;
  }

  /** Renews the lease and gets new fences, before those that are left are used up; and hears whether others wait. */
  async refill(store: LockStore, lease: Lease): Promise<void> {
    this.#asking = true;
    const sentAt = now();
    const { leaseMs } = lease;
    try {
      const grant = await store.reserve(lease);
      // One that became a reader meanwhile has nothing to hand on any more.
      if (!grant) return lease.sharing === 'exclusive' ? lease.lose('taken') : undefined;
      lease.confirm(sentAt, leaseMs);
      this.#take(grant, lease.heardAt);
    } catch {
      // Without fences the run just ends; the watchdog looks after the lease.
    } finally {
      this.#asking = false;
    }
  }

  get #isWithinBounds(): boolean {
    return (
      !this.#contended ||
      (this.#handOffs < HAND_OFFS && now() < Math.min(this.#startedAt + LONGEST_MS, this.#heardAt + SILENCE_MS))
    );
  }

  #take({ fence, fenceCount = 1, contended }: Granted, heardAt: number): void {
    this.#nextFence = fence;
    this.#fencesLeft = fenceCount;
    // Who began to wait after the store answered has been heard of before its answer.
    this.#contended ||= contended;
    this.#heardAt = heardAt;
  }
}
