import { now } from '../../clock/deadline.js';
import { ChurnMap } from '../../collections/churn-map.js';
import { otherPermits } from '../../errors/lock-options.error.js';
import { Listeners } from '../listeners.js';
import {
  permitsOf,
  ALIVE_MS,
  HAND_OFF_FENCES,
  fenceCountFor,
  hasLocalWaiters,
  KEPT_MARK,
  type AcquireCommand,
  type Cancellation,
  type FoundProcesses,
  type ForceUnlockOptions,
  type Granted,
  type Busy,
  type KeyView,
  type LockDetails,
  type LockStore,
  type OwnedLock,
  type ProcessQuestion,
  type ProcessReply,
  type RenewalOutcome,
  type StoreListener,
} from '../lock-store.js';
import { MemoryKey } from './memory-key.js';
import { Sweep } from '../sweep.js';

/**
 * Stores locks in the memory of one process, with the same rules and the same order as Redis: for tests, and for apps
 * with one process. Two `MemoryLockStore`s know nothing of each other: share one between modules so that their locks
 * exclude each other.
 */
export class MemoryLockStore implements LockStore {
  readonly #keys = new ChurnMap<string, MemoryKey>();
  /** Removes the keys of leases that ended without a release. */
  readonly #leasesEnded = new Sweep(this.#keys, (key) => key.isUnused);
  readonly #listeners = new Listeners();
  #lastFence = 0;

  listen(listener: StoreListener): void {
    this.#listeners.add(listener);
  }

  async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    const { keys, token, leaseMs, sharing, queue, polls: waits } = command;
    if (!queue) {
      const obstacle = keys.map((key) => this.#key(key)).find((key) => !this.#mayHave(key, command));
      if (obstacle && waits) for (const holder of obstacle.holders.keys()) this.#listeners.contended(holder);
      if (obstacle) return this.#held(obstacle, obstacle.queue.size, sharing);
    }
    this.#leasesEnded.ifDue();
    for (const [index, name] of keys.entries()) {
      const key = this.#key(name);
      if (!this.#mayHave(key, command)) {
        // It must not keep later keys while it waits for this one: keys that are held out of order deadlock.
        void this.cancel({ ...command, keys: keys.slice(index + 1) });
        return this.#held(key, this.#join(key, command), sharing);
      }
      if (key.has(token)) key.extend(token, leaseMs);
      else key.give(token, sharing, leaseMs);
      key.queue.delete(token);
    }
    return this.#granted(keys, fenceCountFor(token));
  }

  async cancel({ keys, token }: Cancellation): Promise<void> {
    const left = keys.filter((key) => this.#keys.get(key)?.queue.delete(token));
    // The waiters behind it may be able to share the key now.
    for (const key of left) this.#handOver(this.#key(key));
    this.#free(keys, token);
  }

  async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    return { gone: renewals.filter((lock) => !this.#renew(lock)), unknown: [] };
  }

  async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    const isExclusive = lock.keys
      .map((key) => this.#keys.get(key))
      .every((key) => key?.sharing === 'exclusive' && key.upgrade === 0);
    return isExclusive && this.#renew(lock) ? this.#granted(lock.keys, HAND_OFF_FENCES) : undefined;
  }

  async release({ keys, token }: OwnedLock, keepMs = 0): Promise<boolean> {
    if (keepMs === 0) return this.#free(keys, token) === keys.length;
    const kept = this.#ours(keys, token + KEPT_MARK);
    const owned = this.#ours(keys, token);
    const ours = owned.map((key) => this.#key(key));
    for (const key of ours) {
      const wrote = key.upgrade > 0;
      key.keep(token, keepMs);
      if (wrote) {
        key.read(token, key.upgrade);
        this.#handOver(key);
      }
      // The reply to the first waiter says when the time is over.
      const [first] = key.queue.keys();
      if (first !== undefined) this.#listeners.offered(first);
    }
    return keys.every((key) => owned.includes(key) || kept.includes(key));
  }

  async upgrade({ keys, token, leaseMs }: OwnedLock, number: number): Promise<Granted | undefined> {
    const ours = this.#ours(keys, token).map((key) => this.#key(key));
    const isAlone = ours.every((key) => key.holders.size === 1 && key.awaits(token, number));
    for (const key of ours) {
      if (!isAlone || ours.length < keys.length) {
        if (key.sharing === 'read') key.read(token, number);
        continue;
      }
      key.write(number);
      key.extend(token, leaseMs);
    }
    return isAlone && ours.length === keys.length ? this.#granted(keys, fenceCountFor(token)) : undefined;
  }

  async downgrade({ keys, token }: OwnedLock, number: number): Promise<boolean> {
    const ours = this.#ours(keys, token).map((key) => this.#key(key));
    for (const key of ours) {
      const wrote = key.sharing !== 'read';
      key.read(token, number);
      if (wrote) this.#handOver(key);
    }
    return ours.length === keys.length;
  }

  async isLocked(key: string): Promise<boolean> {
    return (this.#keys.get(key)?.holders.size ?? 0) > 0;
  }

  async inspect(key: string): Promise<KeyView | undefined> {
    const found = this.#keys.get(key);
    if (!found || found.holders.size === 0) return undefined;
    const time = now();
    return {
      sharing: found.sharing,
      holders: [...found.holders].map(([token, endsAt]) => ({ token, leaseLeftMs: endsAt - time })),
      waiters: [...found.queue]
        .filter(([, { aliveUntil }]) => aliveUntil >= time)
        .map(([token, { sharing, label }]) => ({ token, sharing, label })),
    };
  }

  async describe(token: string): Promise<LockDetails | undefined> {
    return this.#listeners.describe(token);
  }

  async findProcesses(): Promise<FoundProcesses> {
    return { sources: this.#listeners.sources, unreached: [] };
  }

  async askProcess(source: string, question: ProcessQuestion): Promise<ProcessReply> {
    return this.#listeners.sources.includes(source) ? { answer: this.#listeners.answer(source, question) } : 'gone';
  }

  async forceRelease(key: string, { token: only, ...forced }: ForceUnlockOptions = {}): Promise<boolean> {
    const tokens = [...(this.#keys.get(key)?.holders.keys() ?? [])].filter(
      (token) => only === undefined || token === only,
    );
    for (const token of tokens) {
      this.#free([key], token);
      // Only now: who hears it may ask at once whether the lock is still there.
      this.#listeners.forceReleased(token, forced);
    }
    return tokens.length > 0;
  }

  /** Returns how many callers are queued for the key. */
  waiters(key: string): number {
    return this.#keys.get(key)?.queue.size ?? 0;
  }

  /** Does nothing: there is no connection and no timer. */
  async close(): Promise<void> {}

  #key(name: string): MemoryKey {
    let key = this.#keys.get(name);
    if (!key) this.#keys.set(name, (key = new MemoryKey(name)));
    return key;
  }

  /**
   * Whether the caller has the key, or may have it now, because no earlier waiter wants it.
   *
   * @throws LockOptionsError when it is shared with another number of permits
   */
  #mayHave(key: MemoryKey, command: AcquireCommand): boolean {
    const { keys, token, sharing } = command;
    if (key.has(token)) return true;
    const permits = permitsOf(key.sharing);
    if (key.holders.size > 0 && key.sharing !== sharing && permits !== undefined && permitsOf(sharing) !== undefined) {
      void this.cancel(command);
      throw otherPermits(keys, permitsOf(sharing)!, permits);
    }
    return this.#handOver(key, token) && key.admits(sharing);
  }

  /**
   * Hands a key to its live waiters in order, while the next one may have it. Returns whether no waiter before the
   * asker still waits.
   */
  #handOver(key: MemoryKey, asker?: string): boolean {
    for (const [token, { sharing, leaseMs, aliveUntil }] of key.queue) {
      if (token === asker) return true;
      if (aliveUntil < now()) {
        key.queue.delete(token);
        continue;
      }
      if (!key.admits(sharing)) return false;
      key.queue.delete(token);
      key.give(token, sharing, leaseMs);
      const grant = this.#granted([key.name], fenceCountFor(token));
      if (!this.#listeners.granted(token, grant)) key.take(token);
    }
    return true;
  }

  #ours(keys: readonly string[], token: string): string[] {
    return keys.filter((key) => this.#keys.get(key)?.has(token));
  }

  #free(keys: readonly string[], token: string): number {
    const ours = this.#ours(keys, token);
    for (const name of ours) {
      const key = this.#key(name);
      key.take(token);
      this.#handOver(key);
    }
    for (const name of keys) if (this.#keys.get(name)?.isUnused) this.#keys.delete(name);
    return ours.length;
  }

  #join(key: MemoryKey, { token, leaseMs, sharing, label }: AcquireCommand): number {
    const { queue } = key;
    const waiter = queue.get(token);
    if (waiter) waiter.aliveUntil = now() + ALIVE_MS;
    else key.join(token, { leaseMs, sharing, label, aliveUntil: now() + ALIVE_MS });
    const [holder] = key.holders.keys();
    if (!waiter && queue.size === 1 && holder !== undefined && hasLocalWaiters(holder))
      this.#listeners.contended(holder);
    return key.ahead(token);
  }

  #renew({ keys, token, leaseMs, upgrade = 0 }: OwnedLock): boolean {
    const ours = this.#ours(keys, token).filter((key) => upgrade === 0 || this.#key(key).isWrittenSince(upgrade));
    for (const key of ours) this.#key(key).extend(token, leaseMs);
    return ours.length === keys.length;
  }

  #granted(keys: readonly string[], fenceCount: number): Granted {
    const fence = Math.max(this.#lastFence + 1, Date.now() * 1000);
    this.#lastFence = fence + fenceCount - 1;
    return { granted: true, fence, fenceCount, contended: keys.some((key) => this.waiters(key) > 0) };
  }

  #held(key: MemoryKey, ahead: number, sharing: AcquireCommand['sharing']): Busy {
    // A permit is free when the first lease ends, the whole key when the last one does.
    const ends = [...key.holders].sort(([, one], [, other]) => one - other);
    const [token, endsAt] = (sharing === key.sharing ? ends[0] : ends.at(-1)) ?? ['', now()];
    return { granted: false, holder: token, leaseLeftMs: endsAt - now(), ahead, fence: this.#lastFence };
  }
}
