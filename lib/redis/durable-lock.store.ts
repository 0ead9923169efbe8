import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { AcquireCommand, Granted, Held, Renewal, StoreListener } from '../store/lock-store.js';
import { Amnesia } from './amnesia.js';
import type { ReachOptions } from './reach.js';
import { RedisLockStore } from './redis-lock.store.js';

/** When a grant counts. */
export interface DurabilityTerms {
  /** How many replicas must have it. */
  readonly replicas: number;
  /** How long to wait for them, in ms. */
  readonly timeoutMs: number;
}

/** What a `DurableLockStore` is made of. */
export interface DurableLockStoreOptions extends ReachOptions {
  readonly durability: DurabilityTerms;
  /** The lease of those who don't name one, in ms. */
  readonly leaseMs: number;
}

/**
 * Locks on one Redis with replicas: a grant counts only when so many of them have it (`WAIT`), and is undone otherwise. And a
 * server that was restarted within the longest lease grants nothing.
 *
 * Renewals go over a connection of their own, as `WAIT` holds up all that comes after it.
 */
export class DurableLockStore extends RedisLockStore {
  readonly #durability: DurabilityTerms;
  readonly #amnesia: Amnesia;
  /** The confirmation that is about to be asked for: one for all grants of a tick. */
  #confirmation: Promise<number> | undefined;

  constructor({ durability, leaseMs, ...options }: DurableLockStoreOptions) {
    super({ ...options, renewsApart: true });
    this.#durability = durability;
    this.#amnesia = new Amnesia(this.redis, leaseMs);
  }

  /** Who is given the lock while it waits asks for it again: only then it is known to be on the replicas. */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.called(token) });
  }

  override async acquire(command: AcquireCommand): Promise<Granted | Held> {
    this.#amnesia.note(command.leaseMs);
    await this.#amnesia.check();
    const { drops } = this.redis;
    const answer = await super.acquire(command);
    if (answer.granted) await this.#confirm(drops, () => this.cancel(command));
    return answer;
  }

  override async upgrade(lock: Renewal): Promise<Granted | undefined> {
    const { drops } = this.redis;
    const grant = await super.upgrade(lock);
    if (grant) await this.#confirm(drops, () => this.downgrade(lock));
    return grant;
  }

  protected override connected(again: boolean): void {
    this.#amnesia.forget();
    super.connected(again);
  }

  /**
   * @param drops how often the connection had dropped before the grant: `WAIT` knows only of its own connection
   * @throws LockUnavailableError when there are too few replicas; it has been undone then
   */
  async #confirm(drops: number, undo: () => Promise<unknown>): Promise<void> {
    const { replicas, timeoutMs } = this.#durability;
    try {
      const have = await (this.#confirmation ??= this.#ask());
      if (drops !== this.redis.drops) throw new LockUnavailableError(`The connection to Redis at ${this.redis.server} dropped before its replicas were known to have the lock, so it was given back.`);
      if (have >= replicas) return;
      throw new LockUnavailableError(
        `Only ${have} of the ${replicas} replicas that "durability" asks for had the lock within ${timeoutMs} ms, so it was given back. Look at the replicas of Redis at ${this.redis.server}.`,
      );
    } catch (error) {
      await undo().catch(() => undefined);
      throw error;
    }
  }

  async #ask(): Promise<number> {
    await Promise.resolve();
    this.#confirmation = undefined;
    return Number(await this.redis.command('WAIT', this.#durability.replicas, this.#durability.timeoutMs));
  }
}
