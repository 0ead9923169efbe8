import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import type { Renewal } from './lock-store.js';

/** Some locks were renewed or are gone, and of some it is not known. */
export class PartlyRenewedError extends LockUnavailableError {
  /** Those that are not their token's any more. */
  readonly gone: readonly Renewal[];
  /** Those whose lease may not have been pushed out. */
  readonly unknown: readonly Renewal[];

  constructor(message: string, gone: readonly Renewal[], unknown: readonly Renewal[], cause?: Error) {
    super(message, cause);
    this.gone = gone;
    this.unknown = unknown;
  }
}
