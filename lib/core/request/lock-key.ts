import { LockKeyError } from '../../errors/lock-key.error.js';
import { quotedStart, shown } from '../../errors/messages.js';

/** Names what is locked: one key, or several that are acquired together, all or none. */
export type LockKey = string | readonly string[];

/** Half a surrogate pair. In UTF-8, which Redis gets, all of them are the same character. */
const HALF_A_PAIR = /[\uD800-\uDFFF]/u;

/** Whether no other text has the same bytes in UTF-8. */
export function isWellFormed(text: string): boolean {
  return !HALF_A_PAIR.test(text);
}

/** Longest key, in characters. */
export const LONGEST_KEY = 1024;

/**
 * Most keys of one call. Redis takes and renews them in one step and does nothing else meanwhile, about 1 ms for 100 of
 * them: a list that comes from a client must not stop it for all others.
 */
export const MOST_KEYS = 100;

/** Most keys that a call may name: one that is named again costs the process time, but not Redis. */
const MOST_NAMED = 10_000;

/**
 * Checks keys, drops duplicates, and puts them in one fixed order, so that two callers can't deadlock.
 *
 * @throws LockKeyError
 */
export function orderedKeys(key: LockKey): readonly string[] {
  const keys = typeof key === 'string' ? [checkedKey(key)] : listedKeys(key).map(checkedKey);
  // The lock is released by them: nobody who gets to see them may change them.
  return Object.freeze(keys.length === 1 ? keys : withoutDuplicates(keys).sort());
}

function withoutDuplicates(keys: readonly string[]): string[] {
  const different = [...new Set(keys)];
  if (different.length > MOST_KEYS) {
    throw new LockKeyError(
      `A call locks at most ${MOST_KEYS} keys, this one names ${different.length}. ` +
        'Lock what they have in common, or take them in portions.',
    );
  }
  return different;
}

/** Copies an array of keys: what a subclass or a Proxy says of itself may change from one look to the next. */
function listedKeys(key: unknown): readonly unknown[] {
  let listed: readonly unknown[] | undefined;
  try {
    if (Array.isArray(key)) listed = copyByIndex(key);
  } catch (error) {
    if (error instanceof LockKeyError) throw error;
    throw new LockKeyError("The array of lock keys can't be read.", error);
  }
  if (!listed) throw new LockKeyError(`A lock key must be a string or an array of strings, not ${shown(key)}.`);
  return listed;
}

function copyByIndex(key: readonly unknown[]): readonly unknown[] {
  const { length } = key;
  if (length === 0) throw new LockKeyError('The array of lock keys is empty: name at least one key.');
  if (length > MOST_NAMED) {
    throw new LockKeyError(
      `A call names at most ${MOST_NAMED} keys, also if many of them are the same, this one names ${length}. ` +
        'Drop the duplicates, or take them in portions.',
    );
  }
  const listed: unknown[] = [];
  for (let at = 0; at < length; at++) listed.push(key[at]);
  if (listed.length !== key.length) throw new LockKeyError('The array of lock keys changes while it is read.');
  return listed;
}

/** @throws LockKeyError */
export function checkedKey(key: unknown): string {
  if (typeof key !== 'string') throw new LockKeyError(`A lock key must be a string, not ${shown(key)}.`);
  if (key === '') throw new LockKeyError('A lock key must not be empty.');
  if (key.length > LONGEST_KEY) {
    throw new LockKeyError(
      `A lock key has at most ${LONGEST_KEY} characters, this one has ${key.length}: ${quotedStart(key, 40)}`,
    );
  }
  if (!isWellFormed(key)) {
    throw new LockKeyError(
      'A lock key must not have half a surrogate pair in it, as Redis would take it for another key: ' +
        `${quotedStart(key)}.`,
    );
  }
  return key;
}
