import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import { PartlyRenewedError } from '../store/partly-renewed.error.js';
import type { AcquireCommand, Granted, Held, Renewal, StoreListener } from '../store/lock-store.js';
import { Amnesia } from './amnesia.js';
import type { ReachOptions } from './reach.js';
import { RedisLockStore } from './redis-lock.store.js';
import { Replicas } from './replicas.js';

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

/** A renewal counts when so many replicas have it: a master that none follows may not be the master any more. */
const FOLLOWERS = 1;

/**
 * Locks on one Redis with replicas: a grant counts only when so many of them have it (`WAIT`), and is undone otherwise. A renewal
 * counts when one has it. And a server that was restarted or became the master within the longest lease grants nothing.
 *
 * Renewals go over a connection of their own, as `WAIT` holds up all that comes after it.
 */
export class DurableLockStore extends RedisLockStore {
  readonly #durability: DurabilityTerms;
  readonly #amnesia: Amnesia;
  readonly #ofGrants: Replicas;
  readonly #ofRenewals: Replicas;

  constructor({ durability, leaseMs, ...options }: DurableLockStoreOptions) {
    super({ ...options, renewsApart: true });
    const { replicas, timeoutMs } = durability;
    this.#durability = durability;
    this.#amnesia = new Amnesia(this.redis, this.names.reign, leaseMs);
    this.#ofGrants = new Replicas(this.redis, replicas, timeoutMs);
    this.#ofRenewals = new Replicas(this.renewals, FOLLOWERS, timeoutMs);
  }

  /** Who is given the lock while it waits asks for it again: only then it is known to be on the replicas. */
  override listen(listener: StoreListener): void {
    super.listen({ ...listener, granted: (token) => listener.called(token) });
  }

  override async acquire(command: AcquireCommand): Promise<Granted | Held> {
    this.#amnesia.note(command.leaseMs);
    const drops = await this.#amnesia.check().catch((error: unknown) => {
      // It is in the queue, and may be given the key there.
      if (command.again) void this.cancel(command);
      throw error;
    });
    const answer = await super.acquire(command);
    if (answer.granted) await this.#confirm(drops, () => this.cancel(command));
    return answer;
  }

  override async renew(renewals: readonly Renewal[]): Promise<readonly Renewal[]> {
    const { drops } = this.renewals;
    const renewed = super.renew(renewals);
    const having = this.#ofRenewals.having(drops);
    having.catch(() => undefined);
    const gone = await renewed;
    for (const { token } of gone) this.lost(token);
    if ((await having) >= FOLLOWERS) return gone;
    throw new PartlyRenewedError(
      `No replica of Redis at ${this.redis.server} had the renewals within ${this.#durability.timeoutMs} ms, so they don't count: it may not be the master any more.`,
      gone,
      renewals.filter((lock) => !gone.includes(lock)),
    );
  }

  override async reserve(lock: Renewal): Promise<Granted | undefined> {
    const { drops } = this.redis;
    const grant = await super.reserve(lock);
    if (grant) await this.#confirm(drops, () => Promise.resolve());
    return grant;
  }

  override async upgrade(lock: Renewal): Promise<Granted | undefined> {
    const { drops } = this.redis;
    const grant = await super.upgrade(lock);
    if (grant) await this.#confirm(drops, () => this.downgrade(lock));
    return grant;
  }

  /** @throws LockUnavailableError when there are too few replicas; it has been undone then */
  async #confirm(drops: number, undo: () => Promise<unknown>): Promise<void> {
    const { replicas, timeoutMs } = this.#durability;
    try {
      const have = await this.#ofGrants.having(drops);
      if (have >= replicas) return;
      throw new LockUnavailableError(
        `Only ${have} of the ${replicas} replicas that "durability" asks for had the lock within ${timeoutMs} ms, so it was given back. Look at the replicas of Redis at ${this.redis.server}.`,
      );
    } catch (error) {
      await undo().catch(() => undefined);
      throw error;
    }
  }
}
