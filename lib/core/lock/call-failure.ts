import { LockKeyError } from '../../errors/lock-key.error.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import type { LockRequest } from '../request/lock-request.js';

/**
 * Why a call failed: its signal aborted; the store did not answer, or the app is shutting down; or the call itself was
 * wrong.
 */
export type CallFailure = 'aborted' | 'unavailable' | 'mistake';

/** Tells why a call failed with an error. */
export function failureOf(error: unknown, { signal, signals = [] }: LockRequest): CallFailure {
  if ([signal, ...signals].some((signal) => signal?.aborted && signal.reason === error)) return 'aborted';
  return error instanceof LockOptionsError || error instanceof LockKeyError ? 'mistake' : 'unavailable';
}
