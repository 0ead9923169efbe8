import { LockError } from './lock.error.js';

/** Thrown when a key can't be made or is not usable: a value is missing, empty or an object. HTTP 400. */
export class LockKeyError extends LockError {
  declare readonly code: 'LOCK_KEY_INVALID';

  /** @param field of the client's request that is wrong, such as `body.id`. Default: none that the client knows */
  constructor(detail: string, cause?: unknown, field?: string) {
    const which = field === undefined ? '.' : `: ${field} is missing, empty or of the wrong kind.`;
    super('LockKeyError', `The request does not say clearly enough what to work on${which}`, {
      code: 'LOCK_KEY_INVALID',
      status: 400,
      detail,
      cause,
    });
  }
}
