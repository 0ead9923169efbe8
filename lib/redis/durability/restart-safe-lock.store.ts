import type { AcquireCommand, Granted, Busy, OwnedLock, RenewalOutcome } from '../../store/lock-store.js';
import { RestartGuard } from './restart-guard.js';
import type { TransportOptions } from '../single/transport.js';
import { RedisLockStore } from '../single/redis-lock.store.js';

/** What a `RestartSafeLockStore` is made of. */
export interface RestartSafeLockStoreOptions extends TransportOptions {
  /** The lease of those who don't name one, in ms. */
  readonly leaseMs: number;
}

/** Locks on one Redis that grants none while it may have forgotten some: for the longest lease after it was started. */
export class RestartSafeLockStore extends RedisLockStore {
  readonly #guard: RestartGuard;
  /** By token: the checks that acquires wait for before they are sent. */
  readonly #checks = new Map<string, Promise<void>>();

  constructor({ leaseMs, ...options }: RestartSafeLockStoreOptions) {
    super(options);
    this.#guard = new RestartGuard(this.redis, { longestLeaseMs: leaseMs, isOneServer: options.isNode ?? false });
  }

  override acquire(command: AcquireCommand): Promise<Granted | Busy> {
    this.#guard.note(command.leaseMs);
    // Not an async function: what is known already is not waited for, and each node of a quorum is asked.
    return this.#guard.isOver ? this.#ask(command) : this.#afterCheck(command);
  }

  override renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    for (const { leaseMs } of renewals) this.#guard.note(leaseMs);
    const { epoch } = this.redis;
    return super.renew(renewals).then((gone) => {
      this.#guard.heard(epoch);
      return gone;
    });
  }

  override release(lock: OwnedLock, keepMs = 0): Promise<boolean> {
    // A quorum gives back also what it was not granted yet: that must not overtake the acquire. Without that, there is nothing to release.
    const check = this.#checks.get(lock.token);
    return check
      ? check.then(
          () => super.release(lock, keepMs),
          () => false,
        )
      : super.release(lock, keepMs);
  }

  /**
   * Makes sure that a grant counts. Answers undefined when that is sure already.
   *
   * @param drops how often the connection had dropped before it was asked for
   * @throws LockUnavailableError when it does not; it has been undone then
   */
  protected confirm(epoch: number, undo: () => Promise<unknown>): Promise<void> | undefined {
    return this.verify(epoch)?.catch(async (error: unknown) => {
      await undo().catch(() => undefined);
      throw error;
    });
  }

  /** As `confirm`, but undoes nothing. */
  protected verify(epoch: number): Promise<void> | undefined {
    // It was asked for again, and maybe granted by a server that is younger than the one that was checked.
    return epoch === this.redis.epoch ? undefined : this.#guard.check();
  }

  async #afterCheck(command: AcquireCommand): Promise<Granted | Busy> {
    const check = this.#guard.check();
    this.#checks.set(command.token, check);
    try {
      await check;
    } catch (error) {
      // It may stand in the queue, and be given the key there.
      if (command.isQueued) void this.cancel(command);
      throw error;
    } finally {
      this.#checks.delete(command.token);
    }
    return this.#ask(command);
  }

  #ask(command: AcquireCommand): Promise<Granted | Busy> {
    const { epoch } = this.redis;
    return super.acquire(command).then((answer) => {
      this.#guard.heard(epoch);
      const confirmed = answer.granted ? this.confirm(epoch, () => this.cancel(command)) : undefined;
      return confirmed ? confirmed.then(() => answer) : answer;
    });
  }
}
