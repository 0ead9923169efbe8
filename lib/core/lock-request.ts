import { now } from '../clock/deadline.js';
import type { TimeoutFacts, TimeoutReason } from '../errors/lock-timeout.error.js';
import type { LockTerms } from './lock-options.js';

/** One call for a lock, with nothing left open. */
export interface LockRequest extends LockTerms {
  readonly keys: readonly string[];
  /** Signals that end the wait; asked for only when the call has to wait. */
  readonly waitSignals: () => readonly AbortSignal[];
}

/** Why a request got no lock. No error object yet: a failed `tryLock` is cheap. */
export type Refusal = TimeoutFacts;

export function refusal(
  reason: TimeoutReason,
  { keys, waitMs, maxWaiters }: LockRequest,
  startedAt: number,
  holder: string | undefined,
): Refusal {
  return { keys, reason, waitedMs: now() - startedAt, waitMs, holder, maxWaiters };
}
