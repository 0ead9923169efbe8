import { LockError } from './lock.error.js';

/** Thrown when a key can't be made or is not usable: a value is missing, empty or an object. HTTP 400. */
export class LockKeyError extends LockError {
  declare readonly code: 'LOCK_KEY_INVALID';

  constructor(detail: string, cause?: unknown) {
    super('LockKeyError', 'The request does not say clearly enough what to work on.', {
      code: 'LOCK_KEY_INVALID',
      status: 400,
      detail,
      cause,
    });
  }
}
