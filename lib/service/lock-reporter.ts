import { now } from '../clock/deadline.js';
import type { Lock, LockReports } from '../core/lock/lock.js';
import { byForce, type ForcedUnlock, type LockLostError } from '../errors/lock-lost.error.js';
import { lockNames, quotedStart } from '../errors/messages.js';
import type { Log } from '../log/safe-log.js';

/** The longest token in a line, in characters. Those of ours are shorter; another tool may have written anything. */
const LONGEST_TOKEN = 150;

/** The most tokens that a line names. */
const MOST_TOKENS = 5;

/** Tells operators of single locks, and of what was done to them from here. */
export interface OperatorReports extends LockReports {
  /** This process has released a key with `forceUnlock`. `tokens`: the owners that it had. */
  released(key: string, tokens: readonly string[], forced: ForcedUnlock): void;
}

/** Logs single locks that operators should know of. */
export class LockReporter implements OperatorReports {
  readonly #log: Pick<Log, 'warn'>;

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log;
  }

  overdue(lock: Lock, warnAfterMs: number): void {
    const { keys, token, heldSince } = lock;
    const { label, fence } = lock.details;
    this.#log.warn(
      `Held for ${Math.round(now() - heldSince)} ms, longer than its "warnAfter" of ${warnAfterMs} ms: ` +
        `${lockNames(keys, label)} (token ${quoted(token)}, fence ${fence}). Look at what its work waits for: ` +
        'a query, a request, a stream that nobody reads. Or was unlock() forgotten? ' +
        '"maxHold" ends such locks in future; forceUnlock() with this token ends it now.',
    );
  }

  takenByForce({ token, fence }: Lock, loss: LockLostError): void {
    this.#log.warn(`${loss.detail} Its token was ${quoted(token)}, its fence ${fence}.`);
  }

  released(key: string, tokens: readonly string[], forced: ForcedUnlock): void {
    const named = tokens.slice(0, MOST_TOKENS).map(quoted).join(', ') || 'unknown';
    const more = tokens.length > MOST_TOKENS ? ` and ${tokens.length - MOST_TOKENS} more` : '';
    this.#log.warn(
      `Released ${lockNames([key])} by force (${tokens.length > 1 ? 'tokens' : 'token'} ${named}${more}): ${byForce(forced)}.`,
    );
  }
}

const quoted = (token: string): string => quotedStart(token, LONGEST_TOKEN);

/** Tells nobody. */
export const NO_REPORTS: OperatorReports = {
  overdue: () => undefined,
  takenByForce: () => undefined,
  released: () => undefined,
};
