import { LockOptionsError } from '../errors/lock-options.error.js';
import { shown } from '../errors/messages.js';
import { plainOptions } from '../errors/plain-options.js';
import { unknownOption } from '../errors/unknown-option.js';

/**
 * Checks the names of the options of a module.
 *
 * @throws LockOptionsError for an unknown option, or for what is no object of options
 */
export function checkedOptions<Options extends object>(
  given: Options,
  known: readonly (keyof Options & string)[],
): Options {
  if (typeof given !== 'object' || given === null || Array.isArray(given))
    throw new LockOptionsError(`forRoot() takes an object of options, not ${shown(given)}.`);
  const options = plainOptions(given, known);
  const unknown = Object.keys(options).find((name) => !(known as readonly string[]).includes(name));
  if (unknown !== undefined) throw unknownOption(unknown, known);
  return options;
}

/**
 * Checks an option that is an object of another library, by one of its methods: it may come from another copy of that.
 *
 * @throws LockOptionsError
 */
export function checkedPart(option: string, value: unknown, method: string, what: string): void {
  const found = typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[method] : undefined;
  if (typeof found !== 'function') throw new LockOptionsError(`"${option}" is ${shown(value)}, but must be ${what}.`);
}
