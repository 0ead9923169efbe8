import {
  ALIVE_MS,
  FIRST_LEASE_MS as FIRST_LEASE,
  fenceCountFor,
  KEPT_MARK,
  LOCAL_WAITERS_MARK,
} from '../../store/lock-store.js';

/**
 * What the words in capitals of the .lua files stand for. What goes to Redis in most calls is a text: Redis formats
 * each number of Lua as a double, which takes longer than many a command.
 */
export { ALIVE_MS, KEPT_MARK, LOCAL_WAITERS_MARK };

/** How many fences come with a grant, and with one to a process in which others wait. */
export const FENCES = String(fenceCountFor(''));
export const HAND_OFF_FENCES = String(fenceCountFor(LOCAL_WAITERS_MARK));

/** The lease of a waiter that was handed the lock, until its process renews it, in ms. */
export const FIRST_LEASE_MS = String(FIRST_LEASE);

/** How long the fence counter lasts after the time has passed it, in ms. */
export const COUNTER_TTL_MS = 86_400_000;

/** Begins the value of a shared key, before how it is shared. No token looks like it. */
export const SHARED = 'nest-redis-lock:';
export const SHARED_LENGTH = SHARED.length;
export const SHARED_READ = `${SHARED}read`;

/** The number of an upgrade follows. */
export const SHARED_WRITE = `${SHARED}write:`;

/** Matches the value of a shared key, and finds how it is shared. */
export const SHARING_PATTERN = `^${SHARED.replaceAll('-', '%-')}(%S*)`;

/** How much of a value is shown to callers. Other tools may have written anything there; no token is this long. */
export const SHOWN_LENGTH = 256;

/** The length of the longest operation of the fast path. */
export const LONGEST_FAST_OPERATION = 'release'.length;

/** How long a queue lasts after a waiter asked, in ms. */
export const QUEUE_TTL_MS = String(2 * ALIVE_MS);

/** The lease of a waiter that may not have heard that the key is its own, in ms. It asks again before that ends. */
export const UNCONFIRMED_LEASE_MS = 2_000;

/** How many waiters to read from a queue at once, after the first, which is mostly enough. */
export const QUEUE_PAGE = 64;

/** How many waiters one call lets in to share a key. */
export const MAX_LET_IN = 100;

/** How many waiters that are gone one call drops. Redis does nothing else meanwhile. */
export const MAX_DROPPED = 1000;

/** How many waiters that can't be notified keep their places, at the head of a queue. Each call passes over them. */
export const MAX_PASSED = 100;

/** Writes a constant as Lua reads it, whatever is in it. */
export function lua(value: string | number): string {
  if (typeof value === 'number') return String(value);
  const bytes = [...Buffer.from(value)].map((byte) => {
    const isPlain = byte >= 32 && byte < 127 && byte !== 39 && byte !== 92;
    return isPlain ? String.fromCharCode(byte) : `\\${String(byte).padStart(3, '0')}`;
  });
  return `'${bytes.join('')}'`;
}
