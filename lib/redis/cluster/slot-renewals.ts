import type { OwnedLock, RenewalOutcome } from '../../store/lock-store.js';
import { mayBeAboutOne, RefusedError } from '../connection/connection-errors.js';
import { allOf } from '../locks/renewals.js';
import { RENEW_IN_CLUSTER, renewedOwner } from '../lua/renew.script.js';
import type { ClusterConnection } from './cluster-connection.js';
import type { ClusterNames } from './cluster-names.js';

/** One key of a lock to renew. */
interface Part {
  readonly key: string;
  readonly lock: OwnedLock;
}

/**
 * Renews the locks of one slot in one call. While the slot moves to another node, renews each key by itself, wherever
 * it is; and also when a node refuses the call because of one of them.
 */
export class SlotRenewals {
  readonly #redis: ClusterConnection;
  readonly #names: ClusterNames;

  constructor(redis: ClusterConnection, names: ClusterNames) {
    this.#redis = redis;
    this.#names = names;
  }

  /** @throws LockUnavailableError when the outcome of all of them is unknown */
  async renew(locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
    const parts = locks.flatMap((lock) => lock.keys.map((key) => ({ key, lock })));
    try {
      return await this.#together(parts, true);
    } catch (error) {
      if (!isMoving(error) && !mayBeAboutOne(error, parts)) throw error;
      return allOf(
        await Promise.allSettled(parts.map((part) => this.#alone(part))),
        parts.map(({ lock }) => [lock]),
      );
    }
  }

  /**
   * Renews one key. The key of an exclusive lock needs no other key; a shared key needs its holders on the same node.
   */
  async #alone(part: Part): Promise<RenewalOutcome> {
    try {
      return await this.#together([part], false);
    } catch (error) {
      if (!isMoving(error)) throw error;
      return this.#together([part], true);
    }
  }

  async #together(parts: readonly Part[], withHolders: boolean): Promise<RenewalOutcome> {
    const keys = parts.map(({ key }) => this.#names.lock(key));
    const holders = withHolders ? parts.map(({ key }) => this.#names.holders(key)) : [];
    const args = parts.flatMap(({ lock }) => [renewedOwner(lock), lock.leaseMs]);
    const { gone, unknown } = await this.#redis.attempt(RENEW_IN_CLUSTER, [...keys, ...holders], args);
    const lockOf = (number: number) => parts[number - 1]!.lock;
    return { gone: gone.map(lockOf), unknown: unknown.map(lockOf) };
  }
}

const isMoving = (error: unknown): boolean => error instanceof RefusedError && error.reply.startsWith('TRYAGAIN');
