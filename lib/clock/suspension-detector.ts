import { now } from './deadline.js';
import { SharedTimer } from './shared-timer.js';

/** How often the clocks are compared while locks are held, in ms. */
const COMPARED_EVERY_MS = 1000;

/** A step of the time of day that is more than a correction, in ms. */
const STEP_MS = 250;

/**
 * Notices that the machine was suspended. The monotonic clock stands still then, and with it the end of each lease
 * here, but not on the server. Only the time of day shows it, once it has been put right. It may have been set forward
 * for another reason: then the server is asked in vain, which does no harm.
 */
export class SuspensionDetector {
  readonly #isNeeded: () => boolean;
  readonly #resumed: () => void;
  /** How far the time of day is ahead of the monotonic clock. */
  #ahead = 0;
  readonly #timer = new SharedTimer();

  /**
   * @param isNeeded whether to go on comparing
   * @param resumed is called after each suspension
   */
  constructor(isNeeded: () => boolean, resumed: () => void) {
    this.#isNeeded = isNeeded;
    this.#resumed = resumed;
  }

  /** Compares the clocks for as long as that is needed, and does not keep the process alive. */
  watch(): void {
    if (this.#timer.isSet) return;
    this.#ahead = Date.now() - now();
    this.#startTimer();
  }

  /** Stops comparing. */
  stop(): void {
    this.#timer.clear();
  }

  #startTimer(): void {
    this.#timer.set(COMPARED_EVERY_MS, () => this.#compare()).unref();
  }

  #compare(): void {
    if (!this.#isNeeded()) return;
    const ahead = Date.now() - now();
    const hasStepped = ahead - this.#ahead > STEP_MS;
    this.#ahead = ahead;
    this.#startTimer();
    if (hasStepped) this.#resumed();
  }
}
