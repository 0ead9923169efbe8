import { LockOptionsError } from '../../errors/lock-options.error.js';
import { lockNames, quoted } from '../../errors/messages.js';
import type { Sharing } from '../../store/lock-store.js';
import type { Lock } from '../lock/lock.js';

export function notReentrant(keys: readonly string[]): LockOptionsError {
  const text = (locks: string): string =>
    `This call is nested in a call that holds ${locks} already, and would wait for itself. ` +
    'Drop "reentrant: false", or start it outside of that call.';
  return new LockOptionsError(text('its lock'), text(lockNames(keys)));
}

export function partlyHeld(keys: readonly string[], parents: ReadonlyMap<string, Lock>): LockOptionsError {
  const text = (locks: string, held: string): string =>
    `This call asks for ${locks} together, inside calls that hold ${held} only: ` +
    'taking the others in addition could deadlock. Take all of them together in the outer call.';
  return new LockOptionsError(
    text(`${keys.length} keys`, `${parents.size} of them`),
    text(lockNames(keys), [...parents.keys()].map(quoted).join(', ')),
  );
}

export function sharedOtherwise(keys: readonly string[], asked: Sharing, held: Sharing): LockOptionsError {
  const text = (locks: string): string =>
    `This call asks for ${locks} as ${named(asked)}, inside a call that has it as ${named(held)}, ` +
    'and would wait for itself. ' +
    'Ask for the same inside, or for more outside.';
  return new LockOptionsError(text('a lock'), text(lockNames(keys)));
}

export function othersRead(reader: Lock): LockOptionsError {
  const text = (locks: string): string =>
    `This call asks to write under ${locks}, inside a call that reads, while others read too: ` +
    'two such calls would wait for each other. ' +
    'Take the lock for writing in the outer call; "lock.downgrade()" lets other readers in when the writing is done.';
  return new LockOptionsError(text('a lock'), text(lockNames(reader.keys)));
}

function named(sharing: Sharing): string {
  if (sharing === 'read') return 'a reader';
  return sharing === 'exclusive' ? 'the only holder' : `one of ${sharing.replace(':', ' ')}`;
}
