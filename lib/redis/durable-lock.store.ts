import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { Granted, Renewal, StoreListener } from '../store/lock-store.js';
import { WaryLockStore, type WaryLockStoreOptions } from './wary-lock.store.js';

/** When a grant counts. */
export interface DurabilityTerms {
  /** How many replicas must have it. */
  readonly replicas: number;
  /** How long to wait for them, in ms. */
  readonly timeoutMs: number;
  /** Whether the master and the replicas must have it on disk, in their append-only files. */
  readonly aof: boolean;
}

/** Who has a grant. */
interface Confirmation {
  readonly master: boolean;
  readonly replicas: number;
}

/** What a `DurableLockStore` is made of. */
export interface DurableLockStoreOptions extends WaryLockStoreOptions {
  readonly durability: DurabilityTerms;
}

/**
 * Locks on one Redis with replicas: a grant counts only when so many of them have it (`WAIT`), or it is on disk (`WAITAOF`), and is undone
 * otherwise. And a server that was restarted within the longest lease grants nothing.
 *
 * Renewals go over a connection of their own, as both commands hold up all that comes after them.
 */
export class DurableLockStore extends WaryLockStore {
  readonly #durability: DurabilityTerms;
  /** The confirmation that is about to be asked for: one for all grants of a tick. */
  #confirmation: Promise<Confirmation> | undefined;

  constructor({ durability, ...options }: DurableLockStoreOptions) {
    super({ ...options, renewsApart: true });
    this.#durability = durability;
  }

  /** Who is given the lock while it waits asks for it again: only then it is known to be on the replicas. */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.called(token) });
  }

  override async upgrade(lock: Renewal): Promise<Granted | undefined> {
    const { drops } = this.redis;
    const grant = await super.upgrade(lock);
    if (grant) await this.confirm(drops, () => this.downgrade(lock));
    return grant;
  }

  /** Both commands know only of their own connection. */
  protected override async verify(drops: number): Promise<void> {
    const { replicas, timeoutMs, aof } = this.#durability;
    const have = await (this.#confirmation ??= this.#ask());
    if (drops !== this.redis.drops) throw new LockUnavailableError(`The connection to Redis at ${this.redis.server} dropped before its replicas were known to have the lock, so it was given back.`);
    if (!have.master) throw new LockUnavailableError(`Redis at ${this.redis.server} had not written the lock to its disk within ${timeoutMs} ms, so it was given back. Look at its disk, and at "appendfsync".`);
    if (have.replicas >= replicas) return;
    throw new LockUnavailableError(
      `Only ${have.replicas} of the ${replicas} replicas that "durability" asks for had the lock${aof ? ' on disk' : ''} within ${timeoutMs} ms, so it was given back. Look at the replicas of Redis at ${this.redis.server}.`,
    );
  }

  async #ask(): Promise<Confirmation> {
    await Promise.resolve();
    this.#confirmation = undefined;
    const { replicas, timeoutMs, aof } = this.#durability;
    if (!aof) return { master: true, replicas: Number(await this.redis.command('WAIT', replicas, timeoutMs)) };
    const [master, others] = (await this.redis.command('WAITAOF', 1, replicas, timeoutMs)) as [number, number];
    return { master: Number(master) === 1, replicas: Number(others) };
  }
}
