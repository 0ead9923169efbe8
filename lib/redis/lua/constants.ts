import {
  ALIVE_MS,
  FENCES_OF_A_RUN,
  fenceCountFor,
  FIRST_LEASE_MS,
  KEPT_MARK,
  RUN_MARK,
} from '../../store/lock-store.js';

/** What the words in capitals of the .lua files stand for. */
export { ALIVE_MS, FENCES_OF_A_RUN, FIRST_LEASE_MS, KEPT_MARK, RUN_MARK };

/** Fences that come with a grant. */
export const FENCES = fenceCountFor('');

/**
 * Stands before how a key is shared, in a key that is: no token looks like it. `write:3` is shared with nobody: it belongs to a
 * reader whose third upgrade made it the writer. After `read` come notes of upgrades that are over: " 3 token".
 */
export const SHARED = 'nest-redis-lock:';
export const SHARED_LENGTH = SHARED.length;
export const SHARED_READ = `${SHARED}read`;
export const SHARED_READ_AND = `${SHARED}read `;
export const SHARED_WRITE = `${SHARED}write:`;

/** Finds how a key is shared in what it holds. */
export const SHARING_PATTERN = `^${SHARED.replaceAll('-', '%-')}(%S*)`;

/** How much of what a key holds is told to those who ask: others may have put anything there, and no token is as long. */
export const LONGEST = 256;

/** How long is the longest operation that the quick way knows. */
export const LONGEST_VERB = 'release'.length;

/** How long a queue lasts after the last waiter asked, in ms. */
export const QUEUE_TTL_MS = 2 * ALIVE_MS;

/** How long a waiter is given the key, in ms, that can't be told, or of which that is not known: it asks again before that. */
export const DEAF_LEASE_MS = 2_000;

/** How many waiters are read from a queue at once, after the first: mostly, that one is enough. */
export const PORTION = 64;

/** How many are let in to share a key in one go. */
export const MOST_AT_ONCE = 100;

/** How many waiters one call drops that are gone, and how many that can't be told keep their places before one that can: Redis does nothing else meanwhile. */
export const MOST_PASSED = 1000;

/** Writes a constant as Lua reads it, whatever is in it. */
export function lua(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const bytes = [...Buffer.from(value)].map((byte) => {
    const character = String.fromCharCode(byte);
    return /[\w:.+^%()* -]/.test(character) ? character : `\\${String(byte).padStart(3, '0')}`;
  });
  return `'${bytes.join('')}'`;
}
