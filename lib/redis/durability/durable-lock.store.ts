import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { Granted, OwnedLock, RenewalOutcome, StoreListener } from '../../store/lock-store.js';
import { ReplicaAcknowledgements } from './replica-acknowledgements.js';
import { RestartSafeLockStore, type RestartSafeLockStoreOptions } from './restart-safe-lock.store.js';

/** When a grant counts. */
export interface DurabilityTerms {
  /** How many replicas must have it. */
  readonly replicas: number;
  /** How long to wait for them, in ms. */
  readonly timeoutMs: number;
  /** Whether the master and the replicas must have it on disk, in their append-only files. */
  readonly aof: boolean;
}

/** What a `DurableLockStore` is made of. */
export interface DurableLockStoreOptions extends RestartSafeLockStoreOptions {
  readonly durability: DurabilityTerms;
}

/**
 * Locks on one Redis with replicas: a grant counts only when so many of them have it (`WAIT`), or it is on disk (`WAITAOF`), and is undone
 * otherwise. A renewal counts only when so many of them have it: else its lease ends when it would have ended without. And a server that was
 * restarted within the longest lease grants nothing.
 *
 * So a master that was replaced can't renew for ever what the next one has long given to somebody else: where all replicas are asked for,
 * the next master knows every lease that somebody relies on, to its end. Where fewer are, that holds for the one that has the most.
 *
 * Renewals go over a connection of their own, as both commands hold up all that comes after them.
 */
export class DurableLockStore extends RestartSafeLockStore {
  readonly #durability: DurabilityTerms;
  readonly #ofGrants: ReplicaAcknowledgements;
  readonly #ofRenewals: ReplicaAcknowledgements;

  constructor({ durability, ...options }: DurableLockStoreOptions) {
    super({ ...options, renewsSeparately: true });
    this.#durability = durability;
    this.#ofGrants = new ReplicaAcknowledgements(this.redis, durability);
    // In memory is enough: who restarts from a disk without the last renewals grants nothing until they are over.
    this.#ofRenewals = new ReplicaAcknowledgements(this.renewals, { ...durability, aof: false });
  }

  /** Who is given the lock while it waits asks for it again: only then it is known to be on the replicas. */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.offered(token) });
  }

  /** What too few replicas have is not known. */
  override async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    const { epoch } = this.renewals;
    const { gone, unknown } = await super.renew(renewals);
    const renewed = renewals.filter((lock) => !gone.includes(lock) && !unknown.includes(lock));
    if (renewed.length === 0 || this.#durability.replicas === 0) return { gone, unknown };
    const refused = await this.#doubtOf(epoch).catch((error: unknown) => error as LockUnavailableError);
    if (!refused) return { gone, unknown };
    if (renewed.length === renewals.length) throw refused;
    return { gone, unknown: [...unknown, ...renewed] };
  }

  missing(locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
    return super.renew(locks);
  }

  /** It renews the lock, too: nothing is undone, but who asked must not rely on it. */
  override async reserve(lock: OwnedLock): Promise<Granted | undefined> {
    const { epoch } = this.redis;
    const grant = await super.reserve(lock);
    if (grant) await this.verify(epoch);
    return grant;
  }

  override async upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    const { epoch } = this.redis;
    const grant = await super.upgrade(lock, number);
    if (grant) await this.confirm(epoch, () => this.downgrade(lock, number));
    return grant;
  }

  /** Both commands know only of their own connection. */
  protected override async verify(epoch: number): Promise<void> {
    const { replicas, timeoutMs, aof } = this.#durability;
    const have = await this.#ofGrants.ask();
    if (epoch !== this.redis.epoch)
      throw new LockUnavailableError(
        `The connection to Redis at ${this.redis.server} dropped before its replicas were known to have the lock, so it was given back.`,
      );
    if (!have.master)
      throw new LockUnavailableError(
        `Redis at ${this.redis.server} had not written the lock to its disk within ${timeoutMs} ms, so it was given back. Look at its disk, and at "appendfsync".`,
      );
    if (have.replicas >= replicas) return;
    throw new LockUnavailableError(
      `Only ${have.replicas} of the ${replicas} replicas that "durability" asks for had the lock${aof ? ' on disk' : ''} within ${timeoutMs} ms, so it was given back. Look at the replicas of Redis at ${this.redis.server}.`,
    );
  }

  /** Why the last renewals don't count, if they don't. */
  async #doubtOf(epoch: number): Promise<LockUnavailableError | undefined> {
    const { replicas, timeoutMs } = this.#durability;
    const { server } = this.redis;
    const have = await this.#ofRenewals.ask();
    if (epoch !== this.renewals.epoch)
      return new LockUnavailableError(
        `The connection to Redis at ${server} dropped before its replicas were known to have the renewal, so it does not count.`,
      );
    if (have.replicas >= replicas) return undefined;
    return new LockUnavailableError(
      `Only ${have.replicas} of the ${replicas} replicas that "durability" asks for had the renewal within ${timeoutMs} ms, so it does not count. ` +
        `Look at the replicas of Redis at ${server}, and whether it is still the master.`,
    );
  }
}
