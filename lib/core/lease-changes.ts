import { now } from '../clock/deadline.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import type { Granted, LockStore } from '../store/lock-store.js';
import type { Lease } from './lease.js';
import type { Watchdog } from './watchdog.js';

/** What holders ask of the store while they hold the lock. */
export class LeaseChanges {
  readonly #store: LockStore;
  readonly #watchdog: Watchdog;

  constructor(store: LockStore, watchdog: Watchdog) {
    this.#store = store;
    this.#watchdog = watchdog;
  }

  /** @throws LockUnavailableError */
  async extend(lease: Lease, leaseMs: number): Promise<void> {
    const { details } = lease;
    const sentAt = now();
    const gone = await this.#store.renew([{ keys: lease.keys, token: lease.token, leaseMs }]);
    if (gone.length > 0) lease.lose('taken');
    // It may have been unlocked and handed on meanwhile: the next one has terms of its own.
    if (!lease.isHeld || lease.details?.fence !== details?.fence) return;
    lease.leaseMs = leaseMs;
    lease.confirm(sentAt, leaseMs);
    this.#watchdog.replan(lease);
  }

  /**
   * Makes a reader that is alone the writer. Answers undefined when others read too.
   *
   * @throws LockUnavailableError
   */
  async upgrade(lease: Lease): Promise<Granted | undefined> {
    try {
      return await this.#store.upgrade(lease);
    } catch (error) {
      // It may have been done all the same.
      void this.downgrade(lease).catch(() => undefined);
      throw error;
    }
  }

  /**
   * Makes the writer a reader.
   *
   * @throws LockUnavailableError
   * @throws LockOptionsError when the store has no readers
   */
  async downgrade(lease: Lease): Promise<void> {
    if (!lease.isHeld) return;
    // Before it is known to be done: from here on nobody may rely on being alone.
    lease.sharing = 'read';
    const ours = await this.#store.downgrade(lease).catch((error: unknown) => {
      if (error instanceof LockOptionsError) lease.sharing = 'exclusive';
      throw error;
    });
    if (!ours && lease.isHeld) lease.lose('taken');
  }
}
