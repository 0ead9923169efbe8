import { now } from './deadline.js';
import { atRoot } from './root-context.js';

/** How often the clocks are compared while locks are held, in ms. */
const LOOKS_EVERY_MS = 1000;

/** By how much the time of day steps, in ms, when it was more than a correction. */
const STEP_MS = 250;

/**
 * Notices that the machine was suspended: the monotonic clock stands still then, and with it the end of each lease, but not that on the server.
 * Only the time of day tells, once it has been put right. It may have been set forward as well: who is told is to ask the server, which does no harm.
 */
export class SuspensionDetector {
  readonly #isWatched: () => boolean;
  readonly #over: () => void;
  /** How far the time of day was ahead of the monotonic clock. */
  #ahead = 0;
  #timer: NodeJS.Timeout | undefined;

  /**
   * @param isWatched whether to go on looking
   * @param over is called after each standstill
   */
  constructor(isWatched: () => boolean, over: () => void) {
    this.#isWatched = isWatched;
    this.#over = over;
  }

  /** Looks for as long as that is asked for, and does not keep the process alive. */
  watch(): void {
    if (this.#timer) return;
    this.#ahead = Date.now() - now();
    this.#lookLater();
  }

  #lookLater(): void {
    this.#timer = atRoot(() => setTimeout(() => this.#look(), LOOKS_EVERY_MS).unref());
  }

  #look(): void {
    this.#timer = undefined;
    if (!this.#isWatched()) return;
    const ahead = Date.now() - now();
    const hasStepped = ahead - this.#ahead > STEP_MS;
    this.#ahead = ahead;
    this.#lookLater();
    if (hasStepped) this.#over();
  }
}
