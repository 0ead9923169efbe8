import { now } from '../../clock/deadline.js';
import type { Granted } from '../../store/lock-store.js';

/** How often, and for how long in ms, a lock may be handed off inside one process while other processes wait for it. */
const HAND_OFFS = 16;
const LONGEST_MS = 20;

/**
 * New fences are reserved when this many are left, and at the latest this long after the last reply of the store, in
 * ms.
 */
const FEW_FENCES = 16;
const SILENCE_MS = 250;

/** The same while other processes wait, so that the end of the run is near. */
const LAST_FENCES = 2;

/**
 * Counts the hand-offs of a lock from caller to caller inside one process, none of which the store is told about. Each
 * caller gets a fence of its own, from those that came with the grant. A run is bounded while other processes wait, and
 * has no bound while none does.
 *
 * The bounds are those of cohort locking (Dice, Marathe, Shavit: Lock Cohorting, 2012).
 */
export class HandOffRun {
  /** Whether new fences are on their way. */
  isRefilling = false;
  readonly #startedAt = now();
  #nextFence = 0;
  #fencesLeft = 0;
  #handOffs = 0;
  #contended = false;
  #repliedAt = 0;

  /**
   * @param grant of the caller that has the lock
   * @param repliedAt when the grant arrived
   */
  constructor(grant: Granted, repliedAt: number) {
    this.addFences(grant, repliedAt);
    this.takeFence();
  }

  /** Whether the lock may be handed off once more. */
  get canHandOff(): boolean {
    return this.#fencesLeft > 0 && this.#isWithinBounds;
  }

  /**
   * Whether to reserve new fences now, which also tells whether other processes wait.
   *
   * @param othersFollow whether there is a caller for one more hand-off
   */
  needsRefill(othersFollow: boolean): boolean {
    if (this.isRefilling) return false;
    if (this.#contended) return othersFollow && this.#fencesLeft <= LAST_FENCES && this.#isWithinBounds;
    return this.#fencesLeft <= FEW_FENCES || now() > this.#repliedAt + SILENCE_MS;
  }

  takeFence(): number {
    this.#fencesLeft--;
    this.#handOffs++;
    return this.#nextFence++;
  }

  /** Notes that another process waits from now on. */
  markContended(): void {
    this.#contended = true;
  }

  /** Replaces the fences that are left by those of a new grant. */
  addFences({ fence, fenceCount = 1, contended }: Granted, repliedAt: number): void {
    this.#nextFence = fence;
    this.#fencesLeft = fenceCount;
    // Another process may begin to wait after the store replied, and that message may overtake the reply: so a mark
    // stays.
    this.#contended ||= contended;
    this.#repliedAt = repliedAt;
  }

  get #isWithinBounds(): boolean {
    return (
      !this.#contended ||
      (this.#handOffs < HAND_OFFS && now() < Math.min(this.#startedAt + LONGEST_MS, this.#repliedAt + SILENCE_MS))
    );
  }
}
