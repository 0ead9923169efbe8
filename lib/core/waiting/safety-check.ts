import { now, roundedDown } from '../../clock/deadline.js';
import type { AcquireCommand, Busy } from '../../store/lock-store.js';
import { holderOf } from '../request/lock-token.js';

/** How often a waiter asks again, in ms: between these two, by chance, so that processes don't ask in step. */
const REGULAR_MS = [750, 1250] as const;

/** The same where another library holds the lock: it tells nobody when it unlocks, and its own waiters ask as often. */
const FOREIGN_MS = [100, 200] as const;

/** Longer than a token of any of them. Something else lies there, and to look at it may cost the store a lot. */
const NO_TOKEN_LENGTH = 200;

/** Check times are rounded to this many ms, so that the waiters of one process ask in one command. */
const STEP_MS = 50;

/**
 * When a waiter asks again, though the store should tell it: pub/sub can lose a message, a crashed holder releases nothing,
 * and the store wants to know who is alive. At the end of the holder's lease if that is sooner; and often enough to renew the
 * keys that a caller of several keys holds already. Where another library has the lock, several times a second.
 */
export function nextCheckAt({ holder, leaseLeftMs }: Busy, { keys, leaseMs }: AcquireCommand): number {
  const time = now();
  const [soonest, latest] = isForeign(holder) ? FOREIGN_MS : REGULAR_MS;
  const regular = roundedDown(time + soonest + Math.random() * (latest - soonest), STEP_MS);
  return Math.min(regular, time + Math.max(0, leaseLeftMs) + 1, keys.length > 1 ? time + leaseMs / 3 : Infinity);
}

/** Whether this is the token of another library; where the store names no holder, that is not known. */
const isForeign = (holder: string): boolean =>
  holder !== '' && holder.length < NO_TOKEN_LENGTH && holderOf(holder) === undefined;
