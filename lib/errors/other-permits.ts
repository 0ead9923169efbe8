import { LockOptionsError } from './lock-options.error.js';
import { namesOf } from './names-of.js';

/** For a caller who names another number of permits than those who have the key. */
export function otherPermits(keys: readonly string[], asked: number, given: number): LockOptionsError {
  return new LockOptionsError(
    `"permits" is ${asked}, but those who hold ${namesOf(keys)} now were given one of ${given}. All callers of a key must name the same number.`,
  );
}
