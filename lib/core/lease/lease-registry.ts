import { waitFor } from '../../clock/wait-for.js';
import type { Lease } from './lease.js';
import { SuspensionDetector } from '../../clock/suspension-detector.js';

/** What shutdown has to wait for: calls that ask for a lock, and leases that are neither lost nor fully given back. */
export class LeaseRegistry implements Iterable<Lease> {
  readonly #leases = new Map<string, Lease>();
  readonly #standstill: SuspensionDetector;
  #asking = 0;
  #onChange: (() => void) | undefined;

  /** @param doubt is called when leases may have ended on the server while this machine stood still */
  constructor(doubt: () => void) {
    this.#standstill = new SuspensionDetector(() => this.#leases.size > 0, doubt);
  }

  add(lease: Lease): void {
    this.#leases.set(lease.token, lease);
    this.#standstill.watch();
  }

  delete(lease: Lease): void {
    this.#leases.delete(lease.token);
    this.#onChange?.();
  }

  get(token: string): Lease | undefined {
    return this.#leases.get(token);
  }

  /** A call asks for a lock; `stopAsking` when it has its answer. */
  startAsking(): void {
    this.#asking++;
  }

  stopAsking(): void {
    this.#asking--;
    this.#onChange?.();
  }

  /** Waits until nobody asks any more: each call settles within the time-out of its store. */
  async answered(): Promise<void> {
    await this.#until(() => this.#asking === 0, Infinity);
  }

  /** Waits until there is no lease left, at most until `untilMs`. */
  async empty(untilMs: number): Promise<void> {
    await this.#until(() => this.#leases.size === 0, untilMs);
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
