import { LockError } from './lock.error.js';

/**
 * Thrown when the store can't answer: Redis is down, hung, or refuses, or this app is shutting down. HTTP 503.
 * `cause` is what the client library said. The body of the method has not run.
 */
export class LockUnavailableError extends LockError {
  declare readonly code: 'LOCK_UNAVAILABLE';

  constructor(detail: string, cause?: unknown) {
    super('LockUnavailableError', 'The service is not available right now. Try again in a moment.', {
      code: 'LOCK_UNAVAILABLE',
      status: 503,
      detail,
      retryable: true,
      cause,
    });
  }
}
