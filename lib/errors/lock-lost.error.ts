import { LockError } from './lock.error.js';
import type { LockUnavailableError } from './lock-unavailable.error.js';
import { lockNames, quotedStart } from './messages.js';

/**
 * Says how a lock was lost:
 * - `expired`: the lease ended by the process's own clock before a renewal was confirmed (or `watchdog: false`, or
 *   `maxHold` was over);
 * - `taken`: Redis says that this owner no longer holds the key (deleted, forced, evicted, or gone with a failover);
 * - `unlocked`: it was released with `unlock()`, or its parent call ended first;
 * - `shutdown`: the app was shutting down and `shutdownGrace` was over.
 */
export type LostReason = 'expired' | 'taken' | 'unlocked' | 'shutdown';

const WHAT_HAPPENED: Record<LostReason, string> = {
  expired:
    'its lease ended before a renewal was confirmed. Was its "maxHold" over, or is it not renewed ' +
    '("watchdog: false")? Otherwise look for a Redis that is unreachable or refuses to renew, ' +
    'and for a stalled event loop; then work less, or raise "lease"',
  taken: 'its key in Redis is gone or belongs to someone else. Somebody deleted or forced it, or Redis lost its data',
  unlocked: 'it had been unlocked. Do this work before "unlock()", and await nested work before the outer call returns',
  shutdown: 'the app shut down and "shutdownGrace" was over. Raise it, or stop the work when "signal" aborts',
};

/** Says who released a lock by force, and why, in their own words. */
export interface ForcedUnlock {
  /** At most 200 characters. */
  readonly by?: string | undefined;
  /** At most 200 characters. */
  readonly reason?: string | undefined;
}

/** Says who did it, and why, as a sentence without its full stop. */
export function byForce({ by, reason }: ForcedUnlock): string {
  const who = by === undefined ? 'somebody' : quotedStart(by, 200);
  return `${who} took it away with forceUnlock()${reason === undefined ? '' : `, because ${quotedStart(reason, 200)}`}`;
}

const notRenewed = ({ detail }: LockUnavailableError): string =>
  `its lease ended, and the last attempt to renew it had failed: ${detail}`;

export interface LostFacts {
  readonly keys: readonly string[];
  readonly label: string | undefined;
  readonly reason: LostReason;
  /** How long it was held, in ms. */
  readonly heldMs: number;
  readonly forced?: ForcedUnlock | undefined;
  /** Why the last renewal before the end of its lease failed. */
  readonly renewalError?: LockUnavailableError | undefined;
  /** The error of the work that ran under the lock. @default `renewalError` */
  readonly cause?: unknown;
}

/** Says that a lock was lost while its work ran: another caller may be inside by now. HTTP 503. */
export class LockLostError extends LockError {
  declare readonly code: 'LOCK_LOST';
  readonly keys: readonly string[];
  /** Who held the lock: the `label` of the call; `Class.method` if `@WithLock` has none. */
  readonly label: string | undefined;
  readonly reason: LostReason;
  readonly heldMs: number;
  /**
   * Who released it with `forceUnlock`, and why, in their own words; undefined when it was lost in another way, or the
   * holder was not told.
   */
  readonly forced: ForcedUnlock | undefined;

  readonly #facts: LostFacts;

  constructor(facts: LostFacts) {
    const { keys, label, reason, heldMs, forced, renewalError, cause = renewalError } = facts;
    super('LockLostError', 'The work was interrupted and may be incomplete. Check its result before trying again.', {
      code: 'LOCK_LOST',
      status: 503,
      detail:
        `Lost ${lockNames(keys, label)} after ${Math.round(heldMs)} ms: ` +
        (renewalError ? notRenewed(renewalError) : `${forced ? byForce(forced) : WHAT_HAPPENED[reason]}.`),
      cause,
    });
    this.#facts = facts;
    this.keys = keys;
    this.label = label;
    this.reason = reason;
    this.heldMs = heldMs;
    this.forced = forced;
  }

  /** The same loss, with the error of the work. @internal */
  withCause(cause: unknown): LockLostError {
    return new LockLostError({ ...this.#facts, cause });
  }
}
