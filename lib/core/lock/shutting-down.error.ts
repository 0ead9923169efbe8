import { LockUnavailableError } from '../../errors/lock-unavailable.error.js';

/** The app shuts down: the store is well. */
export class ShuttingDownError extends LockUnavailableError {
  constructor() {
    super('This app is shutting down and takes no new locks. Ask another node.');
  }
}
