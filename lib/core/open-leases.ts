import type { Lease } from './lease.js';
import { waitFor } from '../clock/wait-for.js';

/** The leases that are neither lost nor fully given back. Shutdown waits for them. */
export class OpenLeases implements Iterable<Lease> {
  readonly #leases = new Set<Lease>();
  #onEmpty: (() => void) | undefined;

  add(lease: Lease): void {
    this.#leases.add(lease);
  }

  delete(lease: Lease): void {
    this.#leases.delete(lease);
    if (this.#leases.size === 0) this.#onEmpty?.();
  }

  /** Waits until there is none left. Answers false when `untilMs` came first. */
  async empty(untilMs: number): Promise<boolean> {
    if (this.#leases.size === 0) return true;
    return waitFor(untilMs, [], (done) => (this.#onEmpty = done), () => (this.#onEmpty = undefined));
  }

  [Symbol.iterator](): Iterator<Lease> {
    return this.#leases.values();
  }
}
