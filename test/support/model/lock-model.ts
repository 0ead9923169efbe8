import {
  ALIVE_MS,
  FIRST_LEASE_MS,
  KEPT_MARK,
  LOCAL_WAITERS_MARK,
  type AcquireCommand,
  type KeyView,
  type OwnedLock,
} from '../../../lib/store/lock-store.js';
import type { Ears, Message, ModelAnswer, ModelGrant, ModelRefusal } from './lock-model-answers.js';
import { ModelKey } from './lock-model-key.js';

/** How long a waiter that can't be told is given a key, in ms. */
const DEAF_LEASE_MS = 2_000;

/** A `LockStore` in its simplest form: what the real ones must answer. Its time is moved by hand. */
export class LockModel {
  /** What the processes are told, in its order. */
  readonly messages: Message[] = [];
  /**
   * Whether somebody was silent, or a key was lost: a store removes what is left of them when it comes across it, and
   * may count them until then.
   */
  isUntidy = false;
  readonly #keys = new Map<string, ModelKey>();
  readonly #ears: (token: string) => Ears;
  readonly #trustsWaiters: boolean;
  readonly #silent = new Set<string>();
  readonly #gone: Pick<AcquireCommand, 'keys' | 'token'>[] = [];
  #time = 0;

  /**
   * @param trustsWaiters whether a waiter can't stand still or be gone, as in one process: else it is given a key for a
   *   short time only
   */
  constructor(ears: (token: string) => Ears, trustsWaiters: boolean) {
    this.#ears = ears;
    this.#trustsWaiters = trustsWaiters;
  }

  acquire(command: AcquireCommand): ModelAnswer {
    const { token, leaseMs, sharing, queue } = command;
    const keys = command.keys.map((name) => this.#key(name));
    this.#silent.delete(token);
    for (const key of queue ? [] : keys) {
      const refusal = this.#refusal(key, command);
      if (refusal === 'other permits') this.cancel(command);
      if (refusal) return refusal;
    }
    for (const [index, key] of keys.entries()) {
      const refusal = this.#refusal(key, command);
      if (refusal === 'other permits') this.cancel(command);
      else if (refusal) {
        this.cancel({ token, keys: command.keys.slice(index + 1) });
        for (const earlier of this.#trustsWaiters ? [] : keys.slice(0, index))
          earlier.holders.set(token, this.#time + Math.min(leaseMs, ALIVE_MS));
        this.#join(key, command, refusal.holders);
        return { ...refusal, ahead: key.placeOf(token) };
      }
      if (refusal) return refusal;
      if (!key.holders.has(token)) this.#share(key, sharing);
      key.renew(token, this.#time + leaseMs);
      key.leave(token);
    }
    return this.#granted(command);
  }

  cancel({ keys, token }: Pick<AcquireCommand, 'keys' | 'token'>): void {
    this.#silent.delete(token);
    for (const name of keys) {
      const key = this.#key(name);
      // Those behind it may be able to share the key now.
      if (key.leave(token)) this.#handOver(key);
      this.#free(key, token);
    }
  }

  renew({ keys, token, leaseMs }: OwnedLock): boolean {
    for (const key of this.#ours(keys, token)) key.renew(token, this.#time + leaseMs);
    return this.#ours(keys, token).length === keys.length;
  }

  reserve(lock: OwnedLock): ModelGrant | undefined {
    const isExclusive = this.#ours(lock.keys, lock.token).every(
      ({ sharing, writing }) => sharing === 'exclusive' && writing === 0,
    );
    return isExclusive && this.renew(lock) ? this.#granted(lock) : undefined;
  }

  release({ keys, token }: OwnedLock, keepMs = 0): boolean {
    const ours = this.#ours(keys, token);
    const kept = keepMs > 0 ? this.#ours(keys, token + KEPT_MARK) : [];
    for (const key of ours) {
      if (keepMs === 0) this.#free(key, token);
      else {
        const wrote = key.writing > 0;
        if (wrote) this.#read(key);
        key.keep(token, this.#time + keepMs);
        if (wrote) this.#handOver(key);
      }
    }
    return new Set([...ours, ...kept]).size === keys.length;
  }

  upgrade(lock: OwnedLock, number: number): ModelGrant | undefined {
    const ours = this.#ours(lock.keys, lock.token);
    if (
      ours.length < lock.keys.length ||
      ours.some((key) => key.holders.size > 1 || !key.isInTime(lock.token, number))
    ) {
      for (const key of ours) if (key.sharing === 'read') key.end(lock.token, number);
      return undefined;
    }
    for (const key of ours) {
      this.#share(key, 'exclusive');
      key.writing = number;
      key.over.clear();
    }
    this.renew(lock);
    return this.#granted(lock);
  }

  downgrade({ keys, token }: OwnedLock, number: number): boolean {
    const ours = this.#ours(keys, token);
    for (const key of ours) {
      if (key.sharing === 'exclusive' && key.writing > number) continue;
      const wrote = key.sharing === 'exclusive';
      this.#read(key);
      key.end(token, number);
      if (wrote) this.#handOver(key);
    }
    return ours.length === keys.length;
  }

  forceRelease(name: string): boolean {
    const tokens = [...this.#key(name).holders.keys()];
    for (const token of tokens) {
      this.messages.push({ what: 'lost', token });
      this.#free(this.#key(name), token);
    }
    return tokens.length > 0;
  }

  lose(name: string): void {
    this.#key(name).holders.clear();
    this.isUntidy = true;
  }

  inspect(name: string): KeyView | undefined {
    return this.#key(name).view(this.#time);
  }

  pass(ms: number): void {
    this.#time += ms;
    for (const key of this.#keys.values()) {
      for (const { command } of key.queue.filter(({ aliveUntil }) => aliveUntil < this.#time)) {
        this.#silent.add(command.token);
        this.isUntidy = key.leave(command.token);
      }
    }
  }

  /** Lets those who were given a key and are gone give it back. */
  settle(): void {
    for (let command = this.#gone.shift(); command; command = this.#gone.shift()) this.cancel(command);
  }

  /** How many of its keys the token has. */
  count({ keys, token }: AcquireCommand): number {
    return this.#ours(keys, token).length;
  }

  /** Whether the token stands in a queue. */
  waits({ keys, token }: AcquireCommand): boolean {
    return keys.some((name) => this.#key(name).placeOf(token) >= 0);
  }

  /** Whether the token was silent for so long that it may have lost its place; and it matters, as others wait. */
  hasNoPlace({ keys, token }: AcquireCommand): boolean {
    return this.#silent.has(token) && keys.some((name) => this.#key(name).queue.length > 0);
  }

  /** Whether nobody has a key or waits for one. */
  get isEmpty(): boolean {
    return [...this.#keys.keys()].every((name) => this.#key(name).holders.size + this.#key(name).queue.length === 0);
  }

  #key(name: string): ModelKey {
    const key = this.#keys.get(name) ?? new ModelKey(name);
    this.#keys.set(name, key);
    for (const [token, endsAt] of key.holders) if (endsAt <= this.#time) key.holders.delete(token);
    if (key.holders.size === 0) key.over.clear();
    return key;
  }

  #ours(names: readonly string[], token: string): ModelKey[] {
    return names.map((name) => this.#key(name)).filter(({ holders }) => holders.has(token));
  }

  #granted({ keys }: Pick<AcquireCommand, 'keys'>): ModelGrant {
    return { granted: true, contended: keys.some((name) => this.#key(name).queue.length > 0) };
  }

  /** Why the key can't be had now, if it can't. */
  #refusal(key: ModelKey, { token, sharing }: AcquireCommand): ModelRefusal | 'other permits' | undefined {
    const { holders } = key;
    if (holders.has(token)) return undefined;
    const other = holders.size > 0 && key.sharing !== sharing;
    if (other && sharing.startsWith('permits') && key.sharing.startsWith('permits')) return 'other permits';
    if (this.#handOver(key, token) && key.admits(sharing)) return undefined;
    // A permit is free when the first of them ends, all of it when the last one does.
    const end = (sharing === key.sharing ? Math.min : Math.max)(...holders.values());
    const named = [...holders.keys()].filter((holder) => holders.get(holder) === end);
    return { granted: false, holders: named, leaseLeftMs: end - this.#time, ahead: key.queue.length };
  }

  #join(key: ModelKey, command: AcquireCommand, holders: readonly string[]): void {
    if (key.join(command, this.#time + ALIVE_MS) && holders[0]!.endsWith(LOCAL_WAITERS_MARK))
      this.messages.push({ what: 'contended', token: holders[0]! });
  }

  #share(key: ModelKey, sharing: AcquireCommand['sharing']): void {
    if (key.holders.size === 0) key.over.clear();
    key.sharing = sharing;
    key.writing = 0;
  }

  #read(key: ModelKey): void {
    key.sharing = 'read';
    key.writing = 0;
  }

  #free(key: ModelKey, token: string): void {
    if (key.holders.delete(token)) this.#handOver(key);
  }

  /** Lets waiters in, in their order, up to the asker. Answers whether nobody before the asker has to wait. */
  #handOver(key: ModelKey, asker?: string): boolean {
    for (const { token, sharing, leaseMs } of key.queue.map(({ command }) => command)) {
      const ears = this.#ears(token);
      if (token === asker) return true;
      if (ears === 'unheard') continue;
      if (!key.admits(sharing)) return false;
      key.leave(token);
      if (ears !== 'deaf') this.messages.push({ what: 'granted', token, contended: key.queue.length > 0 });
      if (ears === 'absent') continue;
      this.#share(key, sharing);
      const longestMs = ears === 'deaf' ? DEAF_LEASE_MS : this.#trustsWaiters ? Infinity : FIRST_LEASE_MS;
      key.holders.set(token, this.#time + Math.min(leaseMs, longestMs));
      if (ears === 'gone') this.#gone.push({ token, keys: [key.name] });
    }
    return true;
  }
}
