import { HALF_DONE, LockError, TRY_AGAIN } from './lock.error.js';

/**
 * Thrown when the store can't grant a lock: Redis is down, hangs, or refuses the command, or this app is shutting down.
 * HTTP 503. `cause` is the error of the client library. The body of the method has not run.
 */
export class LockUnavailableError extends LockError {
  declare readonly code: 'LOCK_UNAVAILABLE';

  /** @param nested whether the call is inside the work of another lock, which may be half done. Default: false */
  constructor(detail: string, cause?: unknown, { nested = false }: { readonly nested?: boolean } = {}) {
    super('LockUnavailableError', `The service is not available right now${nested ? HALF_DONE : TRY_AGAIN}`, {
      code: 'LOCK_UNAVAILABLE',
      status: 503,
      detail,
      retryable: !nested,
      cause,
    });
  }
}

/** Makes the error of what the work of a lock asks of the store: that work may be half done. */
export const inWork = (error: unknown): unknown =>
  error instanceof LockUnavailableError && error.retryable
    ? new LockUnavailableError(error.detail, error.cause, { nested: true })
    : error;
