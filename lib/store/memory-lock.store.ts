import { now } from '../clock/deadline.js';
import type { AcquireCommand, Granted, Held, LockStore, Renewal } from './lock-store.js';

interface Owner {
  readonly token: string;
  endsAt: number;
}

/** Sweeping costs as much as there are keys, so it is done when their number has doubled. */
const FIRST_SWEEP_AT = 1024;

/**
 * Locks in the memory of one process, with the same rules as Redis: for tests and for apps that run once.
 * Two `MemoryLockStore`s know nothing of each other; share one between modules to let them exclude each other.
 */
export class MemoryLockStore implements LockStore {
  readonly #owners = new Map<string, Owner>();
  #lastFence = 0;
  #sweepAt = FIRST_SWEEP_AT;

  async acquire({ keys, token, leaseMs }: AcquireCommand): Promise<Granted | Held> {
    for (const key of keys) {
      const owner = this.#owner(key);
      if (owner && owner.token !== token) return { granted: false, holder: owner.token, leaseLeftMs: owner.endsAt - now() };
    }
    this.#sweep();
    for (const key of keys) this.#owners.set(key, { token, endsAt: now() + leaseMs });
    this.#lastFence = Math.max(this.#lastFence + 1, Date.now() * 1000);
    return { granted: true, fence: this.#lastFence };
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly boolean[]> {
    return renewals.map(({ keys, token, leaseMs }) => {
      const owners = keys.map((key) => this.#owner(key)).filter((owner) => owner?.token === token);
      for (const owner of owners) owner!.endsAt = Math.max(owner!.endsAt, now() + leaseMs);
      return owners.length === keys.length;
    });
  }

  async release({ keys, token }: Renewal): Promise<boolean> {
    const ours = keys.filter((key) => this.#owner(key)?.token === token);
    for (const key of ours) this.#owners.delete(key);
    return ours.length === keys.length;
  }

  async isLocked(key: string): Promise<boolean> {
    return this.#owner(key) !== undefined;
  }

  async forceRelease(key: string): Promise<boolean> {
    return this.#owner(key) !== undefined && this.#owners.delete(key);
  }

  /** Nothing to close: it has no connection and no timer. */
  async close(): Promise<void> {}

  #owner(key: string): Owner | undefined {
    const owner = this.#owners.get(key);
    return owner && owner.endsAt > now() ? owner : undefined;
  }

  /** Drops the leases that ended without a release, so that the map can't grow for ever. */
  #sweep(): void {
    if (this.#owners.size < this.#sweepAt) return;
    for (const [key, { endsAt }] of this.#owners) {
      if (endsAt <= now()) this.#owners.delete(key);
    }
    this.#sweepAt = Math.max(FIRST_SWEEP_AT, this.#owners.size * 2);
  }
}
