import type { LockError } from '../errors/lock.error.js';
import { remember } from '../errors/remember.js';

/** The locked work of an HTTP request: what another try of the request would repeat. */
export class RequestWork {
  #hasBegun = false;
  #waiting = 0;
  readonly #hasWorked = (): boolean => this.#hasBegun || this.#waiting > 0;
  /** The errors from before any has begun. */
  #errors: readonly WeakRef<LockError>[] = [];

  /** @returns a function that tells whether work that was asked for begins, or was refused */
  ask(): (begins: boolean) => void {
    this.#waiting++;
    return (begins) => {
      this.#waiting--;
      if (!begins) return;
      this.#hasBegun = true;
      for (const error of this.#errors) error.deref()?.forbidRetry();
      this.#errors = [];
    };
  }

  /**
   * Makes an error not retryable once work has begun, as an app's filter may read the error before it asks for the
   * status, or when it becomes the response and work waits that may yet begin.
   *
   * @param isResponse whether it can become the response as a whole, and not only the end of one that has begun
   */
  judge(error: LockError, isResponse: boolean): void {
    error.mayBecomeResponse(this.#hasWorked);
    if (!isResponse) return;
    if (this.#hasBegun) error.forbidRetry();
    else this.#errors = remember(this.#errors, new WeakRef(error));
  }
}
