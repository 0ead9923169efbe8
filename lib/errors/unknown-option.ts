import { LockOptionsError } from './lock-options.error.js';
import { nearest } from './nearest.js';

/** Makes the error for an option that does not exist. */
export function unknownOption(name: string, known: readonly string[]): LockOptionsError {
  const meant = nearest(name, known);
  return new LockOptionsError(
    `There is no option "${name}".${meant ? ` Did you mean "${meant}"?` : ''} Known options: ${known.join(', ')}.`,
  );
}
