import { durationMs } from '../clock/duration.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import { plainOptions } from '../errors/plain-options.js';
import { unknownOption } from '../errors/unknown-option.js';
import { LONGEST_KEY } from './request/lock-key.js';
import { wrongValue } from './request/lock-options.js';
import type { ListQuestion } from './list/list-question.js';
import type { ListOptions } from './lock-list.js';

const KNOWN: readonly string[] = ['match', 'olderThan', 'limit'] satisfies (keyof ListOptions)[];

const DEFAULT_LIMIT = 1_000;
const LARGEST_LIMIT = 100_000;

/**
 * Checks the options of `list`.
 *
 * @throws LockOptionsError naming the option, the value and what is allowed
 */
export function resolveListOptions(given: ListOptions): Pick<ListQuestion, 'match' | 'olderThanMs' | 'limit'> {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new LockOptionsError(`list() takes an object of options, not ${shown(given)}.`);
  const options = plainOptions(given, KNOWN);
  const unknown = Object.keys(options).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw unknownOption(unknown, KNOWN);
  const { match = '*', olderThan = 0, limit = DEFAULT_LIMIT } = options;
  if (typeof match !== 'string' || match === '' || match.length > LONGEST_KEY)
    throw wrongValue('match', match, `a pattern of 1 to ${LONGEST_KEY} characters, such as "account:*"`);
  if (!Number.isInteger(limit) || limit < 1 || limit > LARGEST_LIMIT)
    throw wrongValue('limit', limit, `a whole number from 1 to ${LARGEST_LIMIT}`);
  return { match, olderThanMs: durationMs('olderThan', olderThan, { min: 0 }), limit };
}
