import { now } from '../clock/deadline.js';
import { ALIVE_MS, fencesFor, RUN_MARK, type AcquireCommand, type Granted, type Held, type LockStore, type Renewal, type StoreListener } from './lock-store.js';

interface Owner {
  readonly token: string;
  endsAt: number;
}

/** Somebody in the queue of a key. */
interface Waiter {
  readonly leaseMs: number;
  aliveUntil: number;
}

/** Sweeping costs as much as there are keys, so it is done when their number has doubled. */
const FIRST_SWEEP_AT = 1024;

/**
 * Locks in the memory of one process, with the same rules and the same order as Redis: for tests and for apps that run once.
 * Two `MemoryLockStore`s know nothing of each other; share one between modules to let them exclude each other.
 */
export class MemoryLockStore implements LockStore {
  readonly #owners = new Map<string, Owner>();
  /** By key; of each the waiters by token, in the order they came. */
  readonly #queues = new Map<string, Map<string, Waiter>>();
  readonly #listeners: StoreListener[] = [];
  #lastFence = 0;
  #sweepAt = FIRST_SWEEP_AT;

  listen(listener: StoreListener): void {
    this.#listeners.push(listener);
  }

  async acquire(command: AcquireCommand): Promise<Granted | Held> {
    const { keys, token, leaseMs, queue } = command;
    for (const key of queue ? [] : keys) {
      const other = this.#other(key, token);
      if (other) return this.#held(other, this.waiters(key));
    }
    this.#sweep();
    for (const [index, key] of keys.entries()) {
      const other = this.#other(key, token);
      if (other) {
        // Whatever it has of later keys, it would hold them out of order: that is how callers deadlock.
        void this.cancel({ keys: keys.slice(index + 1), token, leaseMs });
        return this.#held(other, this.#join(key, command, other.token));
      }
      this.#owners.set(key, { token, endsAt: now() + leaseMs });
      this.#leave(key, token);
    }
    return this.#granted(keys, token);
  }

  async cancel({ keys, token }: Renewal): Promise<void> {
    for (const key of keys) this.#leave(key, token);
    this.#free(keys, token);
  }

  async renew(renewals: readonly Renewal[]): Promise<readonly Renewal[]> {
    return renewals.filter((lock) => !this.#renew(lock));
  }

  async reserve(lock: Renewal): Promise<Granted | undefined> {
    return this.#renew(lock) ? this.#granted(lock.keys, lock.token) : undefined;
  }

  async release({ keys, token }: Renewal): Promise<boolean> {
    return this.#free(keys, token) === keys.length;
  }

  async isLocked(key: string): Promise<boolean> {
    return this.#owner(key) !== undefined;
  }

  async forceRelease(key: string): Promise<boolean> {
    const owner = this.#owner(key);
    return owner !== undefined && this.#free([key], owner.token) === 1;
  }

  /** How many are queued for the key. */
  waiters(key: string): number {
    return this.#queues.get(key)?.size ?? 0;
  }

  /** Nothing to close: it has no connection and no timer. */
  async close(): Promise<void> {}

  #owner(key: string): Owner | undefined {
    const owner = this.#owners.get(key);
    return owner && owner.endsAt > now() ? owner : undefined;
  }

  /** Who has the key, or is given it now because it is free and he is first; undefined if that is the token itself. */
  #other(key: string, token: string): Owner | undefined {
    const owner = this.#owner(key) ?? this.#handOver(key, token);
    return owner?.token === token ? undefined : owner;
  }

  /** Gives a free key to its first live waiter, unless that is the one who asks. */
  #handOver(key: string, asker?: string): Owner | undefined {
    const queue = this.#queues.get(key);
    for (const [token, { leaseMs, aliveUntil }] of queue ?? []) {
      if (token === asker) return undefined;
      this.#leave(key, token);
      if (aliveUntil < now()) continue;
      const owner = { token, endsAt: now() + leaseMs };
      this.#owners.set(key, owner);
      const grant = this.#granted([key], token);
      if (this.#listeners.some((listener) => listener.granted(token, grant))) return owner;
      this.#owners.delete(key);
    }
    return undefined;
  }

  #free(keys: readonly string[], token: string): number {
    const ours = keys.filter((key) => this.#owner(key)?.token === token);
    for (const key of ours) {
      this.#owners.delete(key);
      this.#handOver(key);
    }
    return ours.length;
  }

  #join(key: string, { token, leaseMs }: AcquireCommand, holder: string): number {
    const queue = this.#queues.get(key) ?? new Map<string, Waiter>();
    this.#queues.set(key, queue);
    const waiter = queue.get(token);
    if (waiter) waiter.aliveUntil = now() + ALIVE_MS;
    else queue.set(token, { leaseMs, aliveUntil: now() + ALIVE_MS });
    if (!waiter && queue.size === 1 && holder.endsWith(RUN_MARK)) for (const listener of this.#listeners) listener.wanted(holder);
    return [...queue.keys()].indexOf(token);
  }

  #leave(key: string, token: string): void {
    const queue = this.#queues.get(key);
    if (queue?.delete(token) && queue.size === 0) this.#queues.delete(key);
  }

  #renew({ keys, token, leaseMs }: Renewal): boolean {
    const owners = keys.map((key) => this.#owner(key)).filter((owner) => owner?.token === token);
    for (const owner of owners) owner!.endsAt = Math.max(owner!.endsAt, now() + leaseMs);
    return owners.length === keys.length;
  }

  #granted(keys: readonly string[], token: string): Granted {
    const fence = Math.max(this.#lastFence + 1, Date.now() * 1000);
    this.#lastFence = fence + fencesFor(token) - 1;
    return { granted: true, fence, contended: keys.some((key) => this.#queues.has(key)) };
  }

  #held({ token, endsAt }: Owner, ahead: number): Held {
    return { granted: false, holder: token, leaseLeftMs: endsAt - now(), ahead, fence: this.#lastFence };
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
