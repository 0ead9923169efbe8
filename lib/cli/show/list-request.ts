import type { ListOptions } from '../../core/lock-list.js';
import type { Arguments } from '../arguments/arguments.js';
import { UsageError } from '../arguments/usage.error.js';
import { duration, number } from '../redis/open-locks.js';

/**
 * Reads which locks are asked for.
 *
 * @throws UsageError, LockOptionsError
 */
export function listRequest(given: Arguments): ListOptions {
  const [match] = given.words;
  if (match === '')
    throw new UsageError('The pattern is empty: leave it out for all keys, or give one such as "account:*".');
  const [olderThan, limit] = [duration(given, 'older', 0), number(given, 'limit', 1, 100_000)];
  return {
    ...(match === undefined ? {} : { match }),
    ...(olderThan === undefined ? {} : { olderThan }),
    ...(limit === undefined ? {} : { limit }),
  };
}
