import { LockOptionsError } from '../errors/lock-options.error.js';
import { namesOf } from '../errors/names-of.js';
import { quoted } from '../errors/shown.js';
import type { Lock } from './lock.js';

export function notReentrant(keys: readonly string[]): LockOptionsError {
  return new LockOptionsError(
    `This call is nested in a call that holds ${namesOf(keys)} already, and would wait for itself. ` +
      'Drop "reentrant: false", or start it outside of that call.',
  );
}

export function partlyHeld(keys: readonly string[], outers: ReadonlyMap<string, Lock>): LockOptionsError {
  return new LockOptionsError(
    `This call asks for ${namesOf(keys)} together, inside calls that hold ${[...outers.keys()].map(quoted).join(', ')} only: ` +
      'taking the others in addition could deadlock. Take all of them together in the outer call.',
  );
}
