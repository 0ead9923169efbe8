/** How long a waiter counts as alive after it asked, in ms. */
export const ALIVE_MS = 5_000;

/**
 * How long a waiter is first handed the lock at most, in ms, because its process may be stopped, or its host may have
 * vanished. A live process renews it. This is as long as a waiter counts as alive: so waiters that are stopped together
 * keep the others out for no longer than one of them.
 */
export const FIRST_LEASE_MS = ALIVE_MS;

/**
 * Fences that come with a grant: for the caller, and for some of those who may queue behind it in its process
 * meanwhile.
 */
const FENCES = 4;

/** Fences that come with `reserve`, and with a grant to a process in which others wait already. */
export const HAND_OFF_FENCES = 64;

/**
 * Ends the token of a lock that has waiters in its process. Its holder is notified when another process begins to wait.
 */
export const LOCAL_WAITERS_MARK = '+';

/**
 * Ends the value of a kept key: it follows the token of the lock that was released, so the value is no token any more.
 */
export const KEPT_MARK = ' kept';

/** Whether no caller has the key any more, and `atLeast` keeps it. */
export const isKept = (token: string): boolean => token.endsWith(KEPT_MARK);

export const hasLocalWaiters = (token: string): boolean => token.endsWith(LOCAL_WAITERS_MARK);

/** How many fences a grant comes with: one for the caller, and one for each hand-off inside its process. */
export const fenceCountFor = (token: string): number => (hasLocalWaiters(token) ? HAND_OFF_FENCES : FENCES);
