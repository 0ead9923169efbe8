import { LockOptionsError } from './lock-options.error.js';
import { namesOf } from './names-of.js';

/** For a caller who names another number of permits than those who have the key. */
export function otherPermits(keys: readonly string[], asked: number, given: number): LockOptionsError {
  const text = (locks: string): string =>
    `"permits" is ${asked}, but those who hold ${locks} now were given one of ${given}. All callers of a key must name the same number.`;
  return new LockOptionsError(text('the lock'), text(namesOf(keys)));
}
