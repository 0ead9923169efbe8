import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { inWork, LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { Granted, LockStore } from '../../store/lock-store.js';
import type { HandOffRun } from './hand-off-run.js';
import type { Lease } from './lease.js';
import type { Watchdog } from './watchdog.js';

/** When a downgrade that failed is tried again, in ms; then after twice that time, up to the longest. */
const FIRST_RETRY_MS = 500;
const LONGEST_RETRY_MS = 2_000;

/** What holders ask of the store while they hold the lock. */
export class LeaseChanges {
  readonly #store: LockStore;
  readonly #watchdog: Watchdog;
  readonly #leaveTurns: (lease: Lease) => void;
  /** Settles when the store has answered all downgrades of a lease, or they have failed. */
  readonly #downgrades = new WeakMap<Lease, Promise<void>>();

  /** @param leaveTurns gives the turns of a lease to the next callers of this process */
  constructor(store: LockStore, watchdog: Watchdog, leaveTurns: (lease: Lease) => void) {
    this.#store = store;
    this.#watchdog = watchdog;
    this.#leaveTurns = leaveTurns;
  }

  /** @throws LockUnavailableError */
  async extend(lease: Lease, leaseMs: number): Promise<void> {
    const { details } = lease;
    const sentAt = now();
    lease.renewalSent(sentAt, leaseMs);
    const { keys, token, upgrade } = lease;
    // Also if no reply comes, or nobody waits for it.
    lease.longestMs = Math.max(lease.longestMs, leaseMs);
    const { gone, unknown } = await this.#store.renew([{ keys, token, leaseMs, upgrade }]).catch((error: unknown) => {
      throw inWork(error);
    });
    if (unknown.length > 0 || (gone.length > 0 && lease.hasEndedWriting(upgrade)))
      throw new LockUnavailableError('The store could not say whether it extended the lease.', undefined, {
        nested: true,
      });
    if (gone.length > 0) lease.lose('taken');
    // It may have been unlocked and handed off meanwhile: the next holder has options of its own.
    if (!lease.isHeld || lease.details?.fence !== details?.fence) return;
    lease.leaseMs = leaseMs;
    lease.confirm(sentAt, leaseMs);
    this.#watchdog.replan(lease);
  }

  /**
   * Renews a lease and reserves new fences for its hand-offs, before those that are left are used up. Never rejects.
   */
  async refill(lease: Lease, run: HandOffRun): Promise<void> {
    run.isRefilling = true;
    const sentAt = now();
    // What the store is asked for is what it confirms, though the holder may change the lease meanwhile.
    const { keys, token, leaseMs } = lease;
    lease.renewalSent(sentAt, leaseMs);
    try {
      const grant = await this.#store.reserve({ keys, token, leaseMs });
      // A writer that became a reader meanwhile has nothing to hand off any more.
      if (!grant) return lease.sharing === 'exclusive' ? lease.lose('taken') : undefined;
      lease.confirm(sentAt, leaseMs);
      run.addFences(grant, lease.repliedAt);
    } catch {
      // Without new fences the run just ends; the watchdog looks after the lease.
    } finally {
      run.isRefilling = false;
    }
  }

  /**
   * Makes a reader that is alone the writer, for a call nested in it, until `endWriting`. Returns undefined when others
   * read too, or the lock is lost.
   *
   * @throws LockUnavailableError
   */
  async startWriting(lease: Lease): Promise<Granted | undefined> {
    lease.writers++;
    const number = ++lease.upgrades;
    let grant: Granted | undefined;
    try {
      // Otherwise the store could upgrade before it ends the upgrade of the nested call that wrote before.
      await this.#downgrades.get(lease);
      // Meanwhile it may have been given back, with keys that have to stay for some time.
      if (lease.isHeld) {
        // An upgrade renews it, too.
        lease.renewalSent(now(), lease.leaseMs);
        grant = await this.#store.upgrade(lease, number);
      }
    } catch (error) {
      // The store may have upgraded all the same.
      this.endWriting(lease);
      throw error;
    }
    if (grant) {
      lease.upgrade = Math.max(lease.upgrade, number);
      return grant;
    }
    lease.writers--;
    // Others read, or it is lost.
    const asked = [{ keys: lease.keys, token: lease.token, leaseMs: 1 }];
    const { gone } = await (this.#store.missing?.(asked) ?? this.#store.renew(asked));
    if (gone.length > 0) lease.lose('taken');
    return undefined;
  }

  /** Makes the writer a reader again, unless another nested call writes. Tries again when the store does not answer. */
  endWriting(lease: Lease): void {
    if (--lease.writers === 0) lease.upgrade = 0;
    this.#readAgain(lease, FIRST_RETRY_MS);
  }

  /**
   * Makes the writer a reader for good. Tries again when the store does not answer.
   *
   * @param isReader called when the store has readers: from then on nobody may rely on being alone, whether it answers
   *   or not
   * @throws LockUnavailableError
   * @throws LockOptionsError when the store has no readers
   */
  async downgrade(lease: Lease, isReader: () => void): Promise<void> {
    // Before the store confirms it.
    lease.sharing = 'read';
    const error = await this.#downgrade(lease).catch((failure: Error) => failure);
    if (error instanceof LockOptionsError) {
      lease.sharing = 'exclusive';
      throw error;
    }
    isReader();
    // A reader has none. So a writer of this process that waits is in the queue before the readers that come later.
    this.#leaveTurns(lease);
    if (!error) return;
    this.#readAgainLater(lease, FIRST_RETRY_MS);
    throw inWork(error);
  }

  #readAgain(lease: Lease, retryMs: number): void {
    if (lease.writers > 0) return;
    this.#downgrade(lease).catch(() => this.#readAgainLater(lease, retryMs));
  }

  #readAgainLater(lease: Lease, retryMs: number): void {
    const again = () => this.#readAgain(lease, Math.min(2 * retryMs, LONGEST_RETRY_MS));
    atRoot(() => setTimeout(again, retryMs).unref());
  }

  async #downgrade(lease: Lease): Promise<void> {
    if (!lease.isHeld) return;
    const reply = this.#store.downgrade(lease, lease.upgrades);
    this.#downgrades.set(
      lease,
      Promise.allSettled([this.#downgrades.get(lease), reply]).then(() => undefined),
    );
    const ours = await reply;
    if (!ours && lease.isHeld) lease.lose('taken');
  }
}
