import { wrongValue } from '../core/request/lock-options.js';
import { noteCopy } from './package-copies.js';
import { LockService } from './lock.service.js';

noteCopy();

export const DEFAULT_MODULE = 'default';

/** The injection token of the options that a `RedisLockModule` was given. */
export const MODULE_OPTIONS_TOKEN = 'REDIS_LOCK_MODULE_OPTIONS';

/**
 * @throws LockOptionsError also for `undefined`, which may be a constant of a circular import: only leaving it out
 * means the default module
 */
export function checkedModuleName(option: string, name: unknown): string {
  if (typeof name === 'string' && name !== '') return name;
  throw wrongValue(option, name, 'a non-empty string. Leave it out for the default module');
}

/**
 * The name of a module among options; that of the default one when it is left out.
 *
 * @throws LockOptionsError
 */
export function moduleNameIn(options: object, option: 'name' | 'module'): string {
  return option in options ? checkedModuleName(option, (options as Record<string, unknown>)[option]) : DEFAULT_MODULE;
}

/**
 * The injection token of the `LockService` of a module, for `app.get()` and `overrideProvider()`: the class itself for
 * the default one.
 *
 * @param moduleName the `name` of the module; default `'default'`
 */
export function lockServiceToken(moduleName: string = DEFAULT_MODULE): typeof LockService | symbol {
  return moduleName === DEFAULT_MODULE
    ? LockService
    : Symbol.for(`@InjectLocks(${JSON.stringify(moduleName)}): ${missing(moduleName)}`);
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
