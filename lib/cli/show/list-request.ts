import type { ListOptions } from '../../core/lock-list.js';
import type { Arguments } from '../arguments/arguments.js';
import { duration } from '../redis/open-locks.js';

/**
 * Reads which locks are asked for.
 *
 * @throws UsageError, LockOptionsError
 */
export function listRequest(given: Arguments): ListOptions {
  const [match] = given.words;
  const [olderThan, limit] = [duration(given, 'older', 0), given.number('limit', 1, 100_000)];
  return {
    ...(match === undefined ? {} : { match }),
    ...(olderThan === undefined ? {} : { olderThan }),
    ...(limit === undefined ? {} : { limit }),
  };
}
