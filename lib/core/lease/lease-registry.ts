import { ChurnMap } from '../../collections/churn-map.js';
import { SuspensionDetector } from '../../clock/suspension-detector.js';
import { waitFor } from '../../clock/wait-for.js';
import type { Lease } from './lease.js';

/**
 * Knows what shutdown has to wait for: calls that ask the store for a lock, and leases that are neither lost nor fully
 * given back.
 */
export class LeaseRegistry implements Iterable<Lease> {
  readonly #leases = new ChurnMap<string, Lease>();
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
    await this.#until(() => this.#leases.size === 0, untilMs);
  }

  /** Compares no clocks any more. */
  stop(): void {
    this.#suspension.stop();
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
