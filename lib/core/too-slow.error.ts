import { LockUnavailableError } from '../errors/lock-unavailable.error.js';

/** The lease of this one caller was too short for how slow the store is just now. */
export class TooSlowError extends LockUnavailableError {
  constructor(tookMs: number, leaseMs: number) {
    super(
      `The store answered after ${Math.round(tookMs)} ms, when the lease of ${leaseMs} ms was over. Raise "lease", or look at the load of Redis and of this process.`,
    );
  }
}
