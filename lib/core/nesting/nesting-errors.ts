import { LockOptionsError } from '../../errors/lock-options.error.js';
import { lockNames } from '../../errors/messages.js';
import { quoted } from '../../errors/messages.js';
import type { Lock } from '../lock/lock.js';

export function notReentrant(keys: readonly string[]): LockOptionsError {
  const text = (locks: string): string =>
    `This call is nested in a call that holds ${locks} already, and would wait for itself. ` +
    'Drop "reentrant: false", or start it outside of that call.';
  return new LockOptionsError(text('its lock'), text(lockNames(keys)));
}

export function partlyHeld(keys: readonly string[], outers: ReadonlyMap<string, Lock>): LockOptionsError {
  const text = (locks: string, held: string): string =>
    `This call asks for ${locks} together, inside calls that hold ${held} only: ` +
    'taking the others in addition could deadlock. Take all of them together in the outer call.';
  return new LockOptionsError(
    text(`${keys.length} keys`, `${outers.size} of them`),
    text(lockNames(keys), [...outers.keys()].map(quoted).join(', ')),
  );
}
