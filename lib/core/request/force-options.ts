import { LockOptionsError } from '../../errors/lock-options.error.js';
import { plainOptions } from '../../errors/plain-options.js';
import { shown } from '../../errors/messages.js';
import { unknownOption } from '../../errors/unknown-option.js';
import type { ForceUnlockOptions } from '../../store/lock-store.js';
import { isWellFormed } from './lock-key.js';
import { wrongValue } from './lock-options.js';

const KNOWN: readonly string[] = ['token', 'by', 'reason'] satisfies (keyof ForceUnlockOptions)[];

/**
 * Checks the options of `forceUnlock`.
 *
 * @throws LockOptionsError naming the option, the value and what is allowed
 */
export function resolveForceOptions(given: ForceUnlockOptions): ForceUnlockOptions {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new LockOptionsError(`forceUnlock() takes an object of options, not ${shown(given)}.`);
  const options = plainOptions(given, KNOWN);
  const unknown = Object.keys(options).find((name) => !KNOWN.includes(name));
  if (unknown !== undefined) throw unknownOption(unknown, KNOWN);
  const { token, by, reason } = options;
  if ('token' in options && (typeof token !== 'string' || token === '')) {
    throw wrongValue(
      'token',
      token,
      'the token of a holder, as inspect() names it. Leave it out to take the key from whoever has it',
    );
  }
  for (const [name, text] of Object.entries({ by, reason }))
    if (text !== undefined && !isShortText(text)) throw wrongValue(name, text, 'a text of 1 to 200 characters');
  return options;
}

function isShortText(text: unknown): boolean {
  return typeof text === 'string' && text !== '' && text.length <= 200 && isWellFormed(text);
}
