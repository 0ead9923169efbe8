import { LockError } from './lock.error.js';
import { lockNames } from './messages.js';

/**
 * Is thrown when an option, a template or the set-up is wrong: at boot, with all such mistakes in one list, and by each
 * call of a method that has one.
 */
export class LockOptionsError extends LockError {
  declare readonly code: 'LOCK_OPTIONS_INVALID';

  /** @param detail where it names keys, which `message` does not */
  constructor(message: string, detail = message) {
    super('LockOptionsError', message, {
      code: 'LOCK_OPTIONS_INVALID',
      status: 500,
      detail,
      clientMessage: 'Internal server error',
    });
  }
}

/** Makes the error for a caller that names another number of permits than the present holders. */
export function otherPermits(keys: readonly string[], asked: number, given: number): LockOptionsError {
  const text = (locks: string): string =>
    `"permits" is ${asked}, but those who hold ${locks} now were given one of ${given}. ` +
    'All callers of a key must name the same number.';
  return new LockOptionsError(text('the lock'), text(lockNames(keys)));
}
