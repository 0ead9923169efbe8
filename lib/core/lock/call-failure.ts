import { LockKeyError } from '../../errors/lock-key.error.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import type { LockRequest } from '../request/lock-request.js';
import { ShuttingDownError } from './shutting-down.error.js';

/** Why a call failed: its signal aborted; the app shuts down; the call itself was wrong; or the store did not answer. */
export type CallFailure = 'aborted' | 'shutdown' | 'mistake' | 'unavailable';

/** Tells why a call failed with an error. */
export function failureOf(error: unknown, { signal, signals = [] }: LockRequest): CallFailure {
  if ([signal, ...signals].some((signal) => signal?.aborted && signal.reason === error)) return 'aborted';
  if (error instanceof ShuttingDownError) return 'shutdown';
  return error instanceof LockOptionsError || error instanceof LockKeyError ? 'mistake' : 'unavailable';
}
