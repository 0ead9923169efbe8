import type { OwnedLock, RenewalOutcome } from '../../store/lock-store.js';
import { RefusedError } from '../connection/connection-errors.js';
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
 * it is.
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
      if (!isMoving(error)) throw error;
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

/**
 * Combines the outcomes of several renewals. The locks of a renewal that failed are unknown.
 *
 * @param locks the locks of each renewal
 * @throws LockUnavailableError when all renewals failed
 */
export function allOf(
  outcomes: readonly PromiseSettledResult<RenewalOutcome>[],
  locks: readonly (readonly OwnedLock[])[],
): RenewalOutcome {
  const failed = outcomes.find((outcome) => outcome.status === 'rejected');
  if (failed && outcomes.every(({ status }) => status === 'rejected')) throw failed.reason;
  const known = outcomes.map((outcome, index) =>
    outcome.status === 'fulfilled' ? outcome.value : { gone: [], unknown: locks[index]! },
  );
  return { gone: known.flatMap(({ gone }) => gone), unknown: known.flatMap(({ unknown }) => unknown) };
}

const isMoving = (error: unknown): boolean => error instanceof RefusedError && error.reply.startsWith('TRYAGAIN');
