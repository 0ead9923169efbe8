import type { AcquireCommand, Granted, Held, Renewal } from '../store/lock-store.js';
import { Amnesia } from './amnesia.js';
import type { ReachOptions } from './reach.js';
import { RedisLockStore } from './redis-lock.store.js';

/** What a `WaryLockStore` is made of. */
export interface WaryLockStoreOptions extends ReachOptions {
  /** The lease of those who don't name one, in ms. */
  readonly leaseMs: number;
}

/** Locks on one Redis that grants none while it may have forgotten some: for the longest lease after it was started. */
export class WaryLockStore extends RedisLockStore {
  readonly #amnesia: Amnesia;

  constructor({ leaseMs, ...options }: WaryLockStoreOptions) {
    super(options);
    this.#amnesia = new Amnesia(this.redis, leaseMs);
  }

  override async acquire(command: AcquireCommand): Promise<Granted | Held> {
    this.#amnesia.note(command.leaseMs);
    await this.#amnesia.check().catch((error: unknown) => {
      // It may stand in the queue, and be given the key there.
      if (command.again) void this.cancel(command);
      throw error;
    });
    const { drops } = this.redis;
    const answer = await super.acquire(command);
    if (answer.granted) await this.confirm(drops, () => this.cancel(command));
    return answer;
  }

  override renew(renewals: readonly Renewal[]): Promise<readonly Renewal[]> {
    for (const { leaseMs } of renewals) this.#amnesia.note(leaseMs);
    return super.renew(renewals);
  }

  override release(lock: Renewal, keepMs = 0): Promise<boolean> {
    this.#amnesia.note(keepMs);
    return super.release(lock, keepMs);
  }

  /**
   * Makes sure that a grant counts.
   *
   * @param drops how often the connection had dropped before it was asked for
   * @throws LockUnavailableError when it does not; it has been undone then
   */
  protected async confirm(drops: number, undo: () => Promise<unknown>): Promise<void> {
    try {
      await this.verify(drops);
    } catch (error) {
      await undo().catch(() => undefined);
      throw error;
    }
  }

  /** @throws LockUnavailableError when a grant does not count */
  protected async verify(drops: number): Promise<void> {
    // It was asked for again, and maybe granted by a server that is younger than the one that was checked.
    if (drops !== this.redis.drops) await this.#amnesia.check();
  }
}
