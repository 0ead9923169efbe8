import { LockUnavailableError } from '../errors/lock-unavailable.error.js';

/** The lease of this one call was too short for the time that the store took. */
export class TooSlowError extends LockUnavailableError {
  constructor(tookMs: number, leaseMs: number) {
    super(
      `The store answered after ${Math.round(tookMs)} ms, when the lease of ${leaseMs} ms was over. ` +
        'Raise "lease", or look at the load of Redis and of this process.',
    );
  }
}
