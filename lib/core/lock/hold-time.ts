import { now, roundedUp } from '../../clock/deadline.js';
import type { TimeWheel } from '../../clock/time-wheel.js';

/** Locks are reported at multiples of this part of `warnAfter`, or of this time, so that they share timers. */
const STEP = 1 / 32;
const LONGEST_STEP_MS = 1000;

/** The wheel calls `report()` of those whose time is over. */
export type HoldTimes = TimeWheel<HoldTime>;

/** Measures how long a lock is held, and reports it once when that is too long. */
export class HoldTime {
  /** When the lock has been held for too long, by the monotonic clock. */
  readonly overAt: number;
  readonly report: () => void;
  readonly #reportAt: number;
  readonly #times: HoldTimes;

  constructor(warnAfterMs: number, times: HoldTimes, report: () => void) {
    this.overAt = now() + warnAfterMs;
    this.report = report;
    this.#reportAt = roundedUp(this.overAt, Math.min(Math.max(1, warnAfterMs * STEP), LONGEST_STEP_MS));
    this.#times = times;
    times.add(this.#reportAt, this);
  }

  get isOver(): boolean {
    return now() > this.overAt;
  }

  /** Ends with the lock. Work that blocks the process may end before a timer could have reported it. */
  end(): void {
    if (this.#times.delete(this.#reportAt, this) && this.isOver) this.report();
  }
}
