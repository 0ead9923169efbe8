import { nextTick } from '../clock/next-tick.js';
import { type LockKey, LockUnavailableError } from '../index.js';
import type {
  AcquireCommand,
  Cancellation,
  FoundProcesses,
  ForceUnlockOptions,
  Granted,
  Busy,
  KeyView,
  LockDetails,
  LockStore,
  OwnedLock,
  ProcessQuestion,
  ProcessReply,
  RenewalOutcome,
  StoreListener,
} from '../store/lock-store.js';
import { askProcessOf, processesOf } from '../store/processes-of.js';

/** Says what goes wrong in a test. */
export interface LockSituation {
  /**
   * Another caller holds these keys, or all keys with `true`: callers get `LockTimeoutError` at once whatever their
   * `wait` is, and `tryLock` returns null.
   */
  readonly busy?: LockKey | true | undefined;
  /**
   * The locks on these keys, or all locks with `true`, are lost. The `signal` of a lock that is held now has aborted
   * when `simulate` returns. A lock that is acquired later is lost as soon as its work really waits for something, and
   * at the latest when it is released.
   */
  readonly lost?: LockKey | true | undefined;
  /**
   * The store does not answer: callers get `LockUnavailableError` at once, and locks held now are lost when their lease
   * ends.
   * @default false
   */
  readonly down?: boolean | undefined;
}

/** How the holder of a busy key appears in errors and in `inspect`. */
const SOMEBODY = 'another-node:1:simulated-holder.1';
const LEASE_LEFT_MS = 30_000;

/**
 * Simulates busy keys, lost locks or an outage when a test asks for it; otherwise passes each call to the given store.
 */
export class SimulatedLockStore implements LockStore {
  situation: LockSituation = {};
  readonly #store: LockStore;
  readonly #listeners: StoreListener[] = [];
  /** The locks that callers hold or wait for, by token. */
  readonly #open = new Map<string, OwnedLock>();

  constructor(store: LockStore) {
    this.#store = store;
  }

  /** Begins a situation, and ends the one before. */
  begin(situation: LockSituation): void {
    this.situation = situation;
    for (const lock of [...this.#open.values()]) if (this.#isLost(lock)) this.#lose(lock);
    // Waiters ask again, and meet the new situation.
    for (const listener of this.#listeners) listener.resync();
  }

  firstOf(keys: readonly string[]): string | undefined {
    return this.#store.firstOf ? this.#store.firstOf(keys) : keys[0];
  }

  async problems(): Promise<readonly string[]> {
    return (await this.#store.problems?.()) ?? [];
  }

  isBusy(keys: LockKey): boolean {
    return names(this.situation.busy, keys);
  }

  open(): void {
    this.#store.open?.();
  }

  listen(listener: StoreListener): void {
    this.#listeners.push(listener);
    this.#store.listen(listener);
  }

  async acquire(command: AcquireCommand): Promise<Granted | Busy> {
    this.#assertUp();
    if (this.isBusy(command.keys))
      return { granted: false, holder: SOMEBODY, leaseLeftMs: LEASE_LEFT_MS, ahead: 0, fence: 0 };
    const reply = await this.#store.acquire(command);
    const lock = {
      keys: command.keys,
      token: (reply.granted && reply.token) || command.token,
      leaseMs: command.leaseMs,
    };
    if (reply.granted || command.queue) this.#open.set(lock.token, lock);
    if (!reply.granted || !this.#isLost(lock)) return reply;
    // Its work has begun by then.
    nextTick(() => this.#lose(lock));
    // With a single fence it is not handed off inside the process: it has to be released, and is found to be lost then.
    return { ...reply, fenceCount: 1 };
  }

  async cancel(command: Cancellation): Promise<void> {
    this.#open.delete(command.token);
    await this.#store.cancel(command);
  }

  async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    this.#assertUp();
    const { gone, unknown } = await this.#store.renew(renewals);
    return { gone: renewals.filter((lock) => gone.includes(lock) || this.#isLost(lock)), unknown };
  }

  async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    this.#assertUp();
    return this.#isLost(lock) ? undefined : this.#store.reserve(lock);
  }

  /** Works while the store is down, too: a real store retries until it has released the lock. */
  async release(lock: OwnedLock, keepMs?: number): Promise<boolean> {
    this.#open.delete(lock.token);
    const wasOurs = await this.#store.release(lock, keepMs);
    return wasOurs && !this.#isLost(lock);
  }

  async upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    this.#assertUp();
    return this.#isLost(lock) ? undefined : this.#store.upgrade(lock, number);
  }

  async downgrade(lock: OwnedLock, number: number): Promise<boolean> {
    this.#assertUp();
    return !this.#isLost(lock) && this.#store.downgrade(lock, number);
  }

  async isLocked(key: string): Promise<boolean> {
    this.#assertUp();
    return this.isBusy(key) || this.#store.isLocked(key);
  }

  async inspect(key: string): Promise<KeyView | undefined> {
    this.#assertUp();
    const view = await this.#store.inspect(key);
    return (
      view ??
      (this.isBusy(key)
        ? { sharing: 'exclusive', holders: [{ token: SOMEBODY, leaseLeftMs: LEASE_LEFT_MS }], waiters: [] }
        : undefined)
    );
  }

  async describe(token: string): Promise<LockDetails | undefined> {
    return this.#store.describe(token);
  }

  async findProcesses(): Promise<FoundProcesses> {
    if (!this.situation.down) return processesOf(this.#store);
    const message = 'This test simulates a store that is down.';
    return { sources: [], unreached: [{ what: 'server', name: 'the store', reason: 'unavailable', message }] };
  }

  async askProcess(source: string, question: ProcessQuestion): Promise<ProcessReply> {
    return this.situation.down ? 'unavailable' : askProcessOf(this.#store, source, question);
  }

  async forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean> {
    this.#assertUp();
    return this.#store.forceRelease(key, options);
  }

  async close(): Promise<void> {
    await this.#store.close();
  }

  /** @throws LockUnavailableError while it is down */
  #assertUp(): void {
    if (this.situation.down) throw new LockUnavailableError('This test simulates a store that is down.');
  }

  #isLost({ keys }: OwnedLock): boolean {
    return names(this.situation.lost, keys);
  }

  #lose(lock: OwnedLock): void {
    const holder = this.#listeners.find((listener) => listener.describe(lock.token));
    if (!holder) return; // released, or not acquired yet
    holder.forceReleased(lock.token, {});
    void this.release(lock);
  }
}

function names(which: LockKey | true | undefined, keys: LockKey): boolean {
  return which === true || (which !== undefined && [which].flat().some((key) => [keys].flat().includes(key)));
}
