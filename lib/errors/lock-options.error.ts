import { LockError } from './lock.error.js';

/** Thrown when an option, a template or the set-up is wrong: at boot, with all such mistakes in one list, and by each call of a method that has one. */
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
