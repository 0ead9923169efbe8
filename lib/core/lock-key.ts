import { LockKeyError } from '../errors/lock-key.error.js';
import { shown } from '../errors/shown.js';

/** What is locked: one key, or several that are taken together, all or none. */
export type LockKey = string | readonly string[];

/** Longest key, in characters. */
export const LONGEST_KEY = 1024;

/**
 * Checks keys, drops duplicates, and puts them in one fixed order, so that two callers can't deadlock.
 *
 * @throws LockKeyError
 */
export function orderedKeys(key: LockKey): readonly string[] {
  if (typeof key === 'string') return [checkedKey(key)];
  if (!Array.isArray(key)) throw new LockKeyError(`A lock key must be a string or an array of strings, not ${shown(key)}.`);
  if (key.length === 0) throw new LockKeyError('The array of lock keys is empty: name at least one key.');
  const keys = (key as readonly string[]).map(checkedKey);
  return keys.length === 1 ? keys : [...new Set(keys)].sort();
}

function checkedKey(key: unknown): string {
  if (typeof key !== 'string') throw new LockKeyError(`A lock key must be a string, not ${shown(key)}.`);
  if (key === '') throw new LockKeyError('A lock key must not be empty.');
  if (key.length > LONGEST_KEY) {
    throw new LockKeyError(`A lock key has at most ${LONGEST_KEY} characters, this one has ${key.length}: ${JSON.stringify(key.slice(0, 40))}…`);
  }
  return key;
}
