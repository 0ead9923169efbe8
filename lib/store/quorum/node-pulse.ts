import { now } from '../../clock/deadline.js';

/** A node that does not reply to any question for this long, in ms, is taken for one that hangs. */
const LEAST_SILENCE_MS = 50;

/** By how much of the difference one slower reply changes what is usual: as TCP smooths its round trips (RFC 6298). */
const SMOOTHING = 1 / 8;

/** How a node of a quorum replies: how long it usually takes, and whether it seems to hang. */
export class NodePulse {
  #open = 0;
  #silentSince = 0;
  #usualMs: number | undefined;

  /**
   * How long to wait for a reply before the node counts as slower than usual: twice what it usually takes, in ms. 0 as
   * long as nothing is known.
   */
  get patienceMs(): number {
    return 2 * (this.#usualMs ?? 0);
  }

  /** Whether it seems to hang, or to be down. */
  get isSilent(): boolean {
    return this.#open > 0 && now() - this.#silentSince > Math.max(LEAST_SILENCE_MS, this.patienceMs);
  }

  asked(): void {
    if (this.#open++ === 0) this.#silentSince = now();
  }

  /**
   * Notes a reply. A faster one is believed at once; a slower one may be due to a stall, so it counts little.
   *
   * @param tookMs undefined for a question that says nothing of what is usual
   */
  replied(tookMs: number | undefined): void {
    this.#open--;
    this.#silentSince = now();
    if (tookMs === undefined) return;
    const usualMs = this.#usualMs ?? tookMs;
    this.#usualMs = tookMs < usualMs ? tookMs : usualMs + SMOOTHING * Math.min(tookMs - usualMs, usualMs + 1);
  }

  failed(): void {
    this.#open--;
  }
}
