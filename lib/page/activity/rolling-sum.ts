/** Adds up what happened in the last steps of time. The step that still goes on counts. */
export class RollingSum {
  readonly #stepMs: number;
  readonly #sums: Float64Array;
  #latest = 0;

  constructor(stepMs: number, steps: number) {
    this.#stepMs = stepMs;
    this.#sums = new Float64Array(steps);
  }

  add(amount: number, nowMs: number): void {
    this.#sums[this.#stepAt(nowMs)]! += amount;
  }

  sum(nowMs: number): number {
    this.#stepAt(nowMs);
    return this.#sums.reduce((sum, one) => sum + one, 0);
  }

  perSecond(nowMs: number): number {
    const passedMs = (this.#sums.length - 1) * this.#stepMs + (nowMs % this.#stepMs);
    return (this.sum(nowMs) / Math.max(passedMs, 1)) * 1000;
  }

  /** The place of the current step. Clears those that have begun since the last look. */
  #stepAt(nowMs: number): number {
    const steps = this.#sums.length;
    const number = Math.max(this.#latest, Math.floor(nowMs / this.#stepMs));
    for (let begun = Math.max(this.#latest + 1, number - steps + 1); begun <= number; begun++)
      this.#sums[begun % steps] = 0;
    this.#latest = number;
    return number % steps;
  }
}
