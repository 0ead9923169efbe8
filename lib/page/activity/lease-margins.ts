/** How long a margin is remembered, in ms: twice this at most, and at least once. */
const WINDOW_MS = 60_000;

/** How much of a lease was left when it was renewed. */
export interface LeaseMargin {
  readonly ms: number;
  /** `ms` as a share of the whole lease. */
  readonly shareOfLease: number;
}

/** Remembers the smallest margin of the last minute or two, as a share of its lease. */
export class LeaseMargins {
  #window = 0;
  #current: LeaseMargin | undefined;
  #before: LeaseMargin | undefined;

  /** @param leaseMs how long the lease was that was renewed */
  add(marginMs: number, leaseMs: number, nowMs: number): void {
    this.#turn(nowMs);
    const shareOfLease = Math.min(1, marginMs / leaseMs);
    if (!this.#current || shareOfLease < this.#current.shareOfLease) this.#current = { ms: marginMs, shareOfLease };
  }

  smallest(nowMs: number): LeaseMargin | undefined {
    this.#turn(nowMs);
    const [one, other] = [this.#before, this.#current];
    if (!one || !other) return one ?? other;
    return one.shareOfLease < other.shareOfLease ? one : other;
  }

  #turn(nowMs: number): void {
    const window = Math.floor(nowMs / WINDOW_MS);
    if (window === this.#window) return;
    this.#before = window === this.#window + 1 ? this.#current : undefined;
    this.#current = undefined;
    this.#window = window;
  }
}
