import { ChurnMap } from '../../collections/churn-map.js';
import { now, timerAt } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { SuspensionDetector } from '../../clock/suspension-detector.js';
import { waitFor } from '../../clock/wait-for.js';
import type { LostReason } from '../../errors/lock-lost.error.js';
import type { Lease } from './lease.js';

/**
 * Knows what shutdown has to wait for: calls that ask the store for a lock; leases that are neither lost nor fully
 * given back, which it iterates over; and what is left of lost ones.
 */
export class LeaseRegistry implements Iterable<Lease> {
  readonly #leases = new ChurnMap<string, Lease>();
  /** Those that are lost and may be left in the store, with timers that forget them when the store has. */
  readonly #lost = new Map<Lease, NodeJS.Timeout | undefined>();
  readonly #suspension: SuspensionDetector;
  #acquiring = 0;
  #onChange: (() => void) | undefined;

  /** @param resumed is called when leases may have ended on the server while this machine was suspended */
  constructor(resumed: () => void) {
    this.#suspension = new SuspensionDetector(() => this.#leases.size > 0, resumed);
  }

  add(lease: Lease): void {
    this.#leases.set(lease.token, lease);
    this.#suspension.watch();
  }

  delete(lease: Lease): void {
    this.#leases.delete(lease.token);
    this.#onChange?.();
  }

  /**
   * Forgets a lease that is lost. But until its holder has left, the store may keep the other ones of several keys, or
   * all keys if it ran a renewal to which no reply came.
   */
  lose(lease: Lease, reason: LostReason): void {
    if (reason === 'expired' ? lease.mayBeRenewed : lease.keys.length > 1) {
      const endsAt = now() + lease.longestMs;
      this.#lost.set(lease, atRoot(() => timerAt(endsAt, () => this.forgetLost(lease)))?.unref());
    }
    this.delete(lease);
  }

  /** The leases of which something may be left, though they are lost. */
  get lost(): Iterable<Lease> {
    return this.#lost.keys();
  }

  forgetLost(lease: Lease): void {
    clearTimeout(this.#lost.get(lease));
    if (this.#lost.delete(lease)) this.#onChange?.();
  }

  get(token: string): Lease | undefined {
    return this.#leases.get(token);
  }

  /** Counts a call that asks the store for a lock, until `endAcquire`. */
  startAcquire(): void {
    this.#acquiring++;
  }

  endAcquire(): void {
    this.#acquiring--;
    this.#onChange?.();
  }

  /** Waits until no call asks for a lock any more: each call settles within the time-out of its store. */
  async whenNoneAcquiring(): Promise<void> {
    await this.#until(() => this.#acquiring === 0, Infinity);
  }

  /** Waits until there is no lease left, at most until `untilMs`. */
  async whenEmpty(untilMs: number): Promise<void> {
    await this.#until(() => this.#leases.size === 0 && this.#lost.size === 0, untilMs);
  }

  /** Waits until no lease is being given back any more: each release settles within the time-out of its store. */
  async whenReleased(): Promise<void> {
    await this.#until(() => this.#leases.size === 0, Infinity);
  }

  /** Compares no clocks any more. */
  stop(): void {
    this.#suspension.stop();
    for (const lease of this.#lost.keys()) this.forgetLost(lease);
  }

  [Symbol.iterator](): Iterator<Lease> {
    return this.#leases.values();
  }

  async #until(condition: () => boolean, untilMs: number): Promise<void> {
    if (condition()) return;
    const start = (done: (value: void) => void) => {
      this.#onChange = () => {
        if (condition()) done();
      };
    };
    await waitFor<void>(untilMs, [], start, () => (this.#onChange = undefined));
  }
}
