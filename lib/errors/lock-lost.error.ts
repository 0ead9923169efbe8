import { LockError } from './lock.error.js';
import { lockNames } from './messages.js';
import { quotedStart } from './messages.js';

/**
 * How a lock was lost:
 * - `expired`: the lease ended by our own clock before a renewal was confirmed (or `watchdog: false`, or `maxHold` was over);
 * - `taken`: Redis says the key is not ours any more (deleted, forced, evicted, or gone with a failover);
 * - `unlocked`: it was given back with `unlock()`, or the call it was nested in ended before it did;
 * - `shutdown`: the app shut down and `shutdownGrace` was over.
 */
export type LostReason = 'expired' | 'taken' | 'unlocked' | 'shutdown';

const WHAT_HAPPENED: Record<LostReason, string> = {
  expired:
    'its lease ended before a renewal was confirmed. Work less, raise "lease", or look for a stalled event loop or an unreachable Redis',
  taken: 'its key in Redis is gone or belongs to someone else. Somebody deleted or forced it, or Redis lost its data',
  unlocked: 'it had been unlocked. Do this work before "unlock()", and await nested work before the outer call returns',
  shutdown: 'the app shut down and "shutdownGrace" was over. Raise it, or stop the work when "signal" aborts',
};

/** Who took a lock away by force, and why, as they say. */
export interface ForcedUnlock {
  /** At most 200 characters. */
  readonly by?: string | undefined;
  /** At most 200 characters. */
  readonly reason?: string | undefined;
}

function byForce({ by, reason }: ForcedUnlock): string {
  const who = by === undefined ? 'somebody' : quotedStart(by, 200);
  return `${who} took it away with forceUnlock()${reason === undefined ? '' : `, because ${quotedStart(reason, 200)}`}`;
}

export interface LostFacts {
  readonly keys: readonly string[];
  readonly label: string | undefined;
  readonly reason: LostReason;
  /** How long it was held, in ms. */
  readonly heldMs: number;
  readonly forced?: ForcedUnlock | undefined;
  /** The error of the work that ran under the lock, if it had one. */
  readonly cause?: unknown;
}

/** Says that a lock was lost while its work ran: somebody else may be inside by now. HTTP 503. */
export class LockLostError extends LockError {
  declare readonly code: 'LOCK_LOST';
  readonly keys: readonly string[];
  /** Who had the lock: the `label` of the call; `Class.method` where `@WithLock` was given none. */
  readonly label: string | undefined;
  readonly reason: LostReason;
  readonly heldMs: number;
  /** Who took it with `forceUnlock`, and why, as they say; undefined when it was lost otherwise, or nobody told. */
  readonly forced: ForcedUnlock | undefined;

  constructor({ keys, label, reason, heldMs, forced, cause }: LostFacts) {
    super('LockLostError', 'The work was interrupted and may be incomplete. Check its result before trying again.', {
      code: 'LOCK_LOST',
      status: 503,
      detail: `Lost ${lockNames(keys, label)} after ${Math.round(heldMs)} ms: ${forced ? byForce(forced) : WHAT_HAPPENED[reason]}.`,
      cause,
    });
    this.keys = keys;
    this.label = label;
    this.reason = reason;
    this.heldMs = heldMs;
    this.forced = forced;
  }
}
