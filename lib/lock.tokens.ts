import { wrongValue } from './core/lock-options.js';
import { noteCopy } from './lock.copies.js';
import { LockService } from './lock.service.js';

noteCopy();

export const DEFAULT_MODULE = 'default';

/** @throws LockOptionsError */
export function checkedModuleName(option: string, name: unknown = DEFAULT_MODULE): string {
  if (typeof name === 'string' && name !== '') return name;
  throw wrongValue(option, name, 'a non-empty string');
}

/**
 * The injection token of the `LockService` of a module, for `app.get()` and `overrideProvider()`: the class itself for the default one.
 *
 * @param moduleName the `name` of the module; default `'default'`
 */
export function lockServiceToken(moduleName: string = DEFAULT_MODULE): typeof LockService | symbol {
  return moduleName === DEFAULT_MODULE ? LockService : Symbol.for(`@InjectLocks(${JSON.stringify(moduleName)}): ${missing(moduleName)}`);
}

/** The property under which an object that Nest built carries the `LockService` its `@WithLock` methods use. */
export function lockServiceSlot(moduleName: string): symbol {
  return Symbol.for(missing(moduleName));
}

/** Nest names a symbol that it can't resolve: so that says what to do about it. */
function missing(moduleName: string): string {
  const call = `forRoot(${moduleName === DEFAULT_MODULE ? '' : `{ name: ${JSON.stringify(moduleName)} }`})`;
  return `LockService of RedisLockModule.${call}; in a test, import LockTestingModule.${call}`;
}
