import { now, roundedDown } from '../clock/deadline.js';
import type { AcquireCommand, Held } from '../store/lock-store.js';

/** How often a waiter asks again, in ms: between these two, by chance, so that processes don't ask in step. */
const SOONEST_MS = 750;
const LATEST_MS = 1250;

/** Check times are rounded to this many ms, so that the waiters of one process ask in one command. */
const STEP_MS = 50;

/**
 * When a waiter asks again, though the store should tell it: pub/sub can lose a message, a crashed holder releases nothing,
 * and the store wants to know who is alive. At the end of the holder's lease if that is sooner; and often enough to renew the
 * keys that a caller of several keys holds already.
 */
export function nextCheckAt({ leaseLeftMs }: Held, { keys, leaseMs }: AcquireCommand): number {
  const time = now();
  const regular = roundedDown(time + SOONEST_MS + Math.random() * (LATEST_MS - SOONEST_MS), STEP_MS);
  return Math.min(regular, time + Math.max(0, leaseLeftMs) + 1, keys.length > 1 ? time + leaseMs / 3 : Infinity);
}
