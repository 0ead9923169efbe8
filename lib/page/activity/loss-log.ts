import type { KeptEvent } from './key-history.js';
import { RollingSum } from './rolling-sum.js';

const MINUTE_MS = 60_000;
const MINUTES = 60;

/** How many losses are kept with all they say. */
const MOST_LOSSES = 50;

/** Counts the locks that this process lost in the last hour, by reason, and remembers the last of them. */
export class LossLog<Loss extends KeptEvent> {
  readonly #byReason = new Map<string, RollingSum>();
  readonly #losses: Loss[] = [];

  add(reason: string, loss: Loss): void {
    let count = this.#byReason.get(reason);
    if (!count) this.#byReason.set(reason, (count = new RollingSum(MINUTE_MS, MINUTES)));
    count.add(1, loss.at);
    if (this.#losses.length === MOST_LOSSES) this.#losses.shift();
    this.#losses.push(loss);
  }

  /** How many for each reason that there was. */
  counts(nowMs: number): Record<string, number> {
    const counts = [...this.#byReason].map(([reason, count]) => [reason, count.sum(nowMs)] as const);
    return Object.fromEntries(counts.filter(([, count]) => count > 0));
  }

  /** The latest first. */
  latest(nowMs: number): Loss[] {
    return this.#losses.filter(({ at }) => at > nowMs - MINUTES * MINUTE_MS).reverse();
  }
}
