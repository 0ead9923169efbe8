import { now } from './deadline.js';
import { atRoot } from './root-context.js';

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
  #timer: NodeJS.Timeout | undefined;
  /** With which timers it was set. Where a test has replaced them since, it does not come. */
  #setBy = setTimeout;

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
    if (this.#timer && this.#setBy === setTimeout) return;
    this.#ahead = Date.now() - now();
    this.#startTimer();
  }

  /** Stops comparing. */
  stop(): void {
    if (this.#setBy === setTimeout) clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  #startTimer(): void {
    this.#setBy = setTimeout;
    this.#timer = atRoot(() => setTimeout(() => this.#compare(), COMPARED_EVERY_MS).unref());
  }

  #compare(): void {
    this.#timer = undefined;
    if (!this.#isNeeded()) return;
    const ahead = Date.now() - now();
    const hasStepped = ahead - this.#ahead > STEP_MS;
    this.#ahead = ahead;
    this.#startTimer();
    if (hasStepped) this.#resumed();
  }
}
