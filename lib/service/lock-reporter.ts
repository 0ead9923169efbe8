import type { Lock } from '../core/lock/lock.js';
import { lockNames } from '../errors/messages.js';
import type { Log } from '../log/safe-log.js';

/** Logs single locks that operators should know of. */
export class LockReporter {
  readonly #log: Pick<Log, 'warn'>;

  constructor(log: Pick<Log, 'warn'>) {
    this.#log = log;
  }

  /** Logs that a lock has been held for longer than its `warnAfter`. */
  overdue({ keys, details, token }: Lock, warnAfterMs: number): void {
    const { label, acquiredAt, fence } = details;
    this.#log.warn(
      `Held for ${Date.now() - acquiredAt} ms, longer than its "warnAfter" of ${warnAfterMs} ms: ` +
        `${lockNames(keys, label)} (token ${token}, fence ${fence}). Look at what its work waits for: a query, a request, a stream ` +
        `that nobody reads. Or was unlock() forgotten? ` +
        '"maxHold" ends such locks in future; forceUnlock() with this token ends it now.',
    );
  }
}
