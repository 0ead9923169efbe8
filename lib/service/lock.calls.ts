import type { LockRequest } from '../core/request/lock-request.js';
import { LockLostError } from '../errors/lock-lost.error.js';
import type { RequestPort } from './request-port.js';

/** Lists the signals that end the wait of a call: that of its options, and that of the request it belongs to. */
export function waitSignalsWith(requests: RequestPort): (this: LockRequest) => readonly AbortSignal[] {
  return function (this: LockRequest) {
    return [this.signal, requests.waitSignal()].filter((signal) => signal !== undefined);
  };
}

/**
 * Makes the error that a call throws for its lost lock.
 *
 * @param cause what the work threw, unless that was the loss itself
 */
export function lostError(lost: LockLostError, requests: RequestPort, cause?: unknown): LockLostError {
  const { keys, label, reason, heldMs, forced } = lost;
  return requests.attachError(
    cause === lost ? lost : new LockLostError({ keys, label, reason, heldMs, forced, cause }),
  );
}
