import type { TimeoutFacts } from '../errors/lock-timeout.error.js';
import type { LockTerms } from './lock-options.js';

/** One call for a lock, with nothing left open. */
export interface LockRequest extends LockTerms {
  readonly keys: readonly string[];
  /** Signals that end the wait; asked for only when the call has to wait. */
  readonly waitSignals: () => readonly AbortSignal[];
}

/** Why a request got no lock. No error object yet: a failed `tryLock` is cheap. */
export type Refusal = TimeoutFacts;
