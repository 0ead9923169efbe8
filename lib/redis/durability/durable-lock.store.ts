import { now } from '../../clock/deadline.js';
import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import { storeOutage } from '../../errors/store-outage.js';
import { ForwardingLockStore } from '../../store/forwarding-lock.store.js';
import type {
  AcquireCommand,
  Busy,
  Granted,
  LockStore,
  OwnedLock,
  RenewalOutcome,
  StoreListener,
} from '../../store/lock-store.js';
import type { Connection } from '../connection/connection.js';
import { RefusedError } from '../connection/connection-errors.js';
import { ReplicaAcknowledgements, type DurabilityTerms } from './replica-acknowledgements.js';

/**
 * The connections of the store: the one for renewals is a connection of its own, as `WAIT` holds up all that comes
 * after it.
 */
interface DurableConnections {
  readonly redis: Connection;
  readonly renewals: Connection;
}

/** Too few replicas have what was written. */
class TooFewReplicasError extends LockUnavailableError {}

/**
 * Counts a grant only when enough replicas have it (`WAIT`), or it is on disk (`WAITAOF`), and undoes it otherwise.
 * Counts a renewal only when enough replicas have it: otherwise the lease ends when it would have ended without.
 *
 * So a master that was replaced can't renew for ever what the next one has long given to somebody else. Where all
 * replicas are asked for, the next master knows every lease that somebody relies on, to its end. Where fewer are,
 * that holds for the replica that has the most.
 */
export class DurableLockStore extends ForwardingLockStore<LockStore> {
  readonly #redis: Connection;
  readonly #renewals: Connection;
  readonly #durability: DurabilityTerms;
  readonly #ofGrants: ReplicaAcknowledgements;
  readonly #ofRenewals: ReplicaAcknowledgements;

  constructor(store: LockStore, { redis, renewals }: DurableConnections, durability: DurabilityTerms) {
    super(store);
    this.#redis = redis;
    this.#renewals = renewals;
    this.#durability = durability;
    this.#ofGrants = new ReplicaAcknowledgements(redis, durability);
    // In memory is enough: a server that restarts from a disk without the last renewals grants nothing until they are
    // over.
    this.#ofRenewals = new ReplicaAcknowledgements(renewals, { ...durability, aof: false });
  }

  /** A waiter that was handed the lock asks for it again: only then the lock is known to be on the replicas. */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.offered(token) });
  }

  override acquire(command: AcquireCommand): Promise<Granted | Busy> {
    return this.#inTime(async (throwIfLate, epoch) => {
      const reply = await super.acquire(command);
      try {
        if (reply.granted) await this.#verifyGrant(epoch);
        else if (command.isQueued) await this.#verifyReplicas(epoch);
        throwIfLate();
      } catch (error) {
        // It does not count, or nobody waits for it any more.
        await this.cancel(command).catch(() => undefined);
        throw error;
      }
      return reply;
    });
  }

  /** The outcome of a renewal that too few replicas have is unknown. */
  override async renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome> {
    const { epoch } = this.#renewals;
    const outcome = await super.renew(renewals);
    const { gone, unknown } = outcome;
    const renewed = renewals.filter((lock) => !gone.includes(lock) && !unknown.includes(lock));
    if (renewed.length === 0 || this.#durability.replicas === 0) return outcome;
    const refused = await this.#renewalProblem(epoch).catch((error: unknown) => error as LockUnavailableError);
    if (!refused) return outcome;
    if (renewed.length === renewals.length) throw refused;
    return { gone, unknown: [...unknown, ...renewed], error: refused };
  }

  override missing(locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
    return super.renew(locks);
  }

  /**
   * It renews the lock too, so nothing is undone; but the caller must not rely on a grant that too few replicas have.
   */
  override reserve(lock: OwnedLock): Promise<Granted | undefined> {
    return this.#inTime(async (_, epoch) => {
      const grant = await super.reserve(lock);
      if (grant) await this.#verifyGrant(epoch);
      return grant;
    });
  }

  /** Who asked ends an upgrade that does not count: here nobody knows whether another nested call still writes. */
  override upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined> {
    return this.#inTime(async (_, epoch) => {
      const grant = await super.upgrade(lock, number);
      if (grant) await this.#verifyGrant(epoch);
      return grant;
    });
  }

  /**
   * Runs work in the time of one command. Calls wait behind those of others for replicas: when that takes too long,
   * the error names the replicas, and not the master, which replies.
   */
  async #inTime<Result>(work: (throwIfLate: () => void, epoch: number) => Promise<Result>): Promise<Result> {
    const startedAt = now();
    const { epoch } = this.#redis;
    try {
      return await this.#redis.inTime((throwIfLate) => work(throwIfLate, epoch));
    } catch (error) {
      const isExplained = error instanceof RefusedError || error instanceof TooFewReplicasError;
      const have = epoch === this.#redis.epoch ? this.#ofGrants.since(startedAt) : undefined;
      if (
        error instanceof LockUnavailableError &&
        !isExplained &&
        have?.master &&
        have.replicas < this.#durability.replicas
      )
        throw this.#tooFew(have.replicas, 'so nobody gets it');
      throw error;
    }
  }

  /**
   * `WAIT` and `WAITAOF` know only of their own connection.
   *
   * @param epoch that of the connection before the lock was asked for
   * @throws LockUnavailableError when the last grants don't count
   */
  async #verifyGrant(epoch: number): Promise<void> {
    const { replicas, timeoutMs } = this.#durability;
    const { server } = this.#redis;
    const have = await this.#ofGrants.ask();
    if (epoch !== this.#redis.epoch)
      throw new LockUnavailableError(
        `The connection to Redis at ${server} dropped before its replicas were known to have the lock, ` +
          'so it was released.',
      );
    if (!have.master)
      throw storeOutage(
        new LockUnavailableError(
          `Redis at ${server} had not written the lock to its disk within ${timeoutMs} ms, so it was released. ` +
            'Look at its disk, and at "appendfsync".',
        ),
      );
    if (have.replicas < replicas) throw this.#tooFew(have.replicas, 'so it was released');
  }

  /**
   * While replicas are missing, the key goes from one caller to the next, and each finds that out by itself. So a
   * waiter asks, too. Not where a question may take as long as a disk.
   *
   * @throws LockUnavailableError when replicas are missing
   */
  async #verifyReplicas(epoch: number): Promise<void> {
    const { replicas, aof } = this.#durability;
    if (aof) return;
    const have = await this.#ofGrants.ask();
    if (epoch === this.#redis.epoch && have.replicas < replicas) throw this.#tooFew(have.replicas, 'so nobody gets it');
  }

  #tooFew(have: number, consequence: string): LockUnavailableError {
    const { replicas, timeoutMs, aof } = this.#durability;
    return storeOutage(
      new TooFewReplicasError(
        `Only ${have} of the ${replicas} replicas that "durability" asks for ` +
          `had the lock${aof ? ' on disk' : ''} within ${timeoutMs} ms, ${consequence}. ` +
          `Look at the replicas of Redis at ${this.#redis.server}.`,
      ),
    );
  }

  /** Returns why the last renewals don't count; undefined if they do. */
  async #renewalProblem(epoch: number): Promise<LockUnavailableError | undefined> {
    const { replicas, timeoutMs } = this.#durability;
    const { server } = this.#redis;
    const have = await this.#ofRenewals.ask();
    if (epoch !== this.#renewals.epoch)
      return new LockUnavailableError(
        `The connection to Redis at ${server} dropped before its replicas were known to have the renewal, ` +
          'so it does not count.',
      );
    if (have.replicas >= replicas) return undefined;
    return new LockUnavailableError(
      `Only ${have.replicas} of the ${replicas} replicas that "durability" asks for ` +
        `had the renewal within ${timeoutMs} ms, so it does not count. ` +
        `Look at the replicas of Redis at ${server}, and whether it is still the master.`,
    );
  }
}
