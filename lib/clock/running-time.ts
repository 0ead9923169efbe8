import { now } from './deadline.js';

/** How often in one time-out to look whether the process stands still. */
export const LOOKS = 20;

/**
 * A timer that is late by more than this part of the time-out shows that the process stood still. A shorter stall
 * leaves time enough.
 */
const STALL = 1 / 2;

/** How many stalls one time-out leaves out. A process that always stands still must not wait for ever. */
export const MOST_STALLS = 3;

/**
 * Returns for how long, in ms, the process stood still, as a timer shows that was due at `dueAt`. That time does not
 * count: connections are not made meanwhile, and replies are not read.
 */
export function stalledMs(dueAt: number, timeoutMs: number): number {
  const lateMs = now() - dueAt;
  return lateMs > timeoutMs * STALL ? lateMs : 0;
}

/**
 * Calls `done` when the process has run for `timeoutMs`. Returns what calls it off.
 *
 * Timers run before sockets are read: after a stall of the process, replies may be there already. So `done` runs after
 * them.
 */
export function afterRunning(timeoutMs: number, done: () => void): () => void {
  let timer: NodeJS.Timeout;
  let stalls = 0;
  const wait = (leftMs: number) => {
    const stepMs = Math.min(leftMs, timeoutMs / LOOKS);
    const dueAt = now() + stepMs;
    timer = setTimeout(() => {
      const stalled = stalls < MOST_STALLS ? stalledMs(dueAt, timeoutMs) : 0;
      if (stalled > 0) stalls++;
      const ranMs = stepMs + now() - dueAt - stalled;
      if (leftMs > ranMs) wait(leftMs - ranMs);
      else setImmediate(done);
    }, stepMs);
  };
  wait(timeoutMs);
  return () => clearTimeout(timer);
}
