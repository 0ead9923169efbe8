/**
 * Reads the monotonic clock, in ms. Every deadline of a lock is on this clock, which does not change when somebody sets
 * the time.
 */
export const now = (): number => performance.now();

/**
 * Rounds a time down to a multiple of a step, and to a whole ms, so that tasks due at about the same time share a
 * timer.
 */
export const roundedDown = (atMs: number, stepMs: number): number => Math.floor(Math.floor(atMs / stepMs) * stepMs);

/** Rounds a time up, in the same way. */
export const roundedUp = (atMs: number, stepMs: number): number => Math.ceil(Math.ceil(atMs / stepMs) * stepMs);

/** Longest delay of a Node timer, in ms: about 24 days. */
export const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** Calls `done` at `atMs` of the monotonic clock; never, when that is further away than a timer can reach. */
export function timerAt(atMs: number, done: () => void): NodeJS.Timeout | undefined {
  const delay = atMs - now();
  if (delay > LONGEST_TIMER_MS) return undefined;
  return setTimeout(done, Math.max(0, Math.ceil(delay)));
}
