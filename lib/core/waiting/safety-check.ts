import { now, roundedDown } from '../../clock/deadline.js';
import type { AcquireCommand, Busy } from '../../store/lock-store.js';
import { holderOf } from '../request/lock-token.js';

/** How often a waiter asks the store again, in ms: at random between these two, so that processes don't ask in step. */
const REGULAR_MS = [750, 1250] as const;

/**
 * The same while another library holds the lock: it sends no message when it unlocks, and its own waiters ask as often.
 */
const FOREIGN_MS = [100, 200] as const;

/** No library has a longer token. The key holds something else then, and reading it often may cost the store a lot. */
const LONGEST_TOKEN = 200;

/** Check times are rounded to this many ms, so that the waiters of one process share a command. */
const STEP_MS = 50;

/**
 * When a waiter asks the store again, although the store should tell it: pub/sub can lose a message, a crashed holder
 * releases nothing, and the store has to know who is alive. At the end of the holder's lease if that is sooner; and
 * often enough to renew the keys that a caller of several keys holds already. Several times a second while another
 * library holds the lock.
 */
export function nextCheckAt({ holder, leaseLeftMs }: Busy, { keys, leaseMs }: AcquireCommand): number {
  const time = now();
  const [soonest, latest] = isForeign(holder) ? FOREIGN_MS : REGULAR_MS;
  const regular = roundedDown(time + soonest + Math.random() * (latest - soonest), STEP_MS);
  return Math.min(regular, time + Math.max(0, leaseLeftMs) + 1, keys.length > 1 ? time + leaseMs / 3 : Infinity);
}

/** Whether this is the token of another library. False if the store names no holder. */
const isForeign = (holder: string): boolean =>
  holder !== '' && holder.length < LONGEST_TOKEN && holderOf(holder) === undefined;
