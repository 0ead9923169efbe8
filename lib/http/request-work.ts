import type { LockError } from '../errors/lock.error.js';

/** The locked work of an HTTP request: what another try of the request would repeat. */
export class RequestWork {
  #hasBegun = false;
  #waiting = 0;
  /** The errors from before any has begun. */
  #errors: WeakRef<LockError>[] = [];
  /** How many of them there may be before those are left out that nobody has any more. */
  #most = 32;

  /** @returns a function that tells whether work that was asked for begins, or was refused */
  ask(): (begins: boolean) => void {
    this.#waiting++;
    return (begins) => {
      this.#waiting--;
      if (!begins) return;
      this.#hasBegun = true;
      for (const error of this.#errors.splice(0)) error.deref()?.forbidRetry();
    };
  }

  /**
   * Makes an error that may become the response not retryable: once work has begun, as an app's filter may read the error
   * before it asks for the status; or when it becomes the response and work waits that may yet begin.
   */
  judge(error: LockError): void {
    error.mayBecomeResponse(this.#hasWorked);
    if (this.#hasBegun) return error.forbidRetry();
    this.#errors.push(new WeakRef(error));
    if (this.#errors.length <= this.#most) return;
    this.#errors = this.#errors.filter((error) => error.deref());
    this.#most = 2 * this.#errors.length;
  }

  /** Makes an error that ends a response which has begun not retryable, if another try would repeat work. */
  judgeEnd(error: LockError): void {
    if (this.#hasWorked()) error.forbidRetry();
  }

  readonly #hasWorked = (): boolean => this.#hasBegun || this.#waiting > 0;
}
