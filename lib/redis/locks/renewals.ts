import type { LockUnavailableError } from '../../errors/lock-unavailable.error.js';
import type { OwnedLock, RenewalOutcome } from '../../store/lock-store.js';
import { mayBeAboutOne } from '../connection/connection-errors.js';
import { RENEW, renewedOwner } from '../lua/renew.script.js';
import type { Transport } from './transport.js';

/** What is asked for a lock. A lock may change before it is asked for again, but not what its holder will believe. */
interface Renewal {
  readonly lock: OwnedLock;
  readonly owner: string;
  readonly leaseMs: number;
}

/**
 * Renews locks on one Redis in one call. Renews each by itself when Redis refuses the call because of one of them.
 *
 * @throws LockUnavailableError when the outcome of all of them is unknown
 */
export async function renewAll(transport: Transport, locks: readonly OwnedLock[]): Promise<RenewalOutcome> {
  const asked = locks.map((lock): Renewal => ({ lock, owner: renewedOwner(lock), leaseMs: lock.leaseMs }));
  try {
    return await renewTogether(transport, asked);
  } catch (error) {
    if (!mayBeAboutOne(error, locks)) throw error;
    const outcomes = await Promise.allSettled(asked.map((one) => renewTogether(transport, [one])));
    return allOf(
      outcomes,
      locks.map((lock) => [lock]),
    );
  }
}

async function renewTogether({ names, renewals }: Transport, asked: readonly Renewal[]): Promise<RenewalOutcome> {
  const owners: OwnedLock[] = [];
  const keys: string[] = [];
  const args: (string | number)[] = [];
  for (const { lock, owner, leaseMs } of asked) {
    for (const key of lock.keys) {
      owners.push(lock);
      keys.push(names.lock(key));
      args.push(owner, leaseMs);
    }
  }
  const { gone, unknown } = await renewals.run(RENEW, keys, args);
  return { gone: gone.map((number) => owners[number - 1]!), unknown: unknown.map((number) => owners[number - 1]!) };
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
  const known = outcomes.map((outcome, index): RenewalOutcome =>
    outcome.status === 'fulfilled'
      ? outcome.value
      : { gone: [], unknown: locks[index]!, error: outcome.reason as LockUnavailableError },
  );
  const error = known.find((outcome) => outcome.error)?.error;
  return {
    gone: known.flatMap(({ gone }) => gone),
    unknown: known.flatMap(({ unknown }) => unknown),
    ...(error && { error }),
  };
}
