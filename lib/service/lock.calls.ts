import type { LockRequest, Refusal } from '../core/request/lock-request.js';
import { Lock } from '../core/lock/lock.js';
import { LockLostError } from '../errors/lock-lost.error.js';
import type { LockExceptionFactory } from '../http/exception-factory.js';
import { clientGoneSignal, attachToRequest } from '../http/http-request.js';

/** The signals that end the wait of a call: its own, and that its HTTP client has gone. */
export function waitSignals(this: LockRequest): readonly AbortSignal[] {
  const clientGone = clientGoneSignal();
  return [this.signal, clientGone].filter((signal) => signal !== undefined);
}

/**
 * What is thrown for a lost lock of a module with this factory; its cause is what the work threw, unless that was the
 * loss itself.
 */
export function lostError(
  lost: LockLostError,
  factory: LockExceptionFactory | undefined,
  cause?: unknown,
): LockLostError {
  const { keys, label, reason, heldMs, forced } = lost;
  return attachToRequest(
    cause === lost ? lost : new LockLostError({ keys, label, reason, heldMs, forced, cause }),
    factory,
  );
}

/** Whether the call that it is nested in has ended since it was let in: it has to take the lock anew. */
export function isOutlived(lock: Lock | Refusal): lock is Lock {
  return lock instanceof Lock && lock.nesting !== undefined && !lock.isHeld;
}
