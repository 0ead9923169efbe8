import { wrongValue } from '../core/request/lock-options.js';
import { noteCopy } from './package-copies.js';
import { LockService } from './lock.service.js';

noteCopy();

export const DEFAULT_MODULE = 'default';

/** The injection token of the options that a `RedisLockModule` was given. */
export const MODULE_OPTIONS_TOKEN = 'REDIS_LOCK_MODULE_OPTIONS';

/**
 * Checks the name of a module.
 *
 * @throws LockOptionsError also for `undefined`, which may be a constant of a circular import: only leaving it out
 * means the default module
 */
export function checkedModuleName(option: string, name: unknown): string {
  if (typeof name === 'string' && name !== '') return name;
  throw wrongValue(option, name, 'a non-empty string. Leave it out for the default module');
}

/**
 * Returns the name of a module among options; the name of the default module when it is left out.
 *
 * @throws LockOptionsError
 */
export function moduleNameIn(options: object, option: 'name' | 'module'): string {
  return option in options ? checkedModuleName(option, (options as Record<string, unknown>)[option]) : DEFAULT_MODULE;
}

/**
 * By module: the symbols of this copy of the package. Those of `Symbol.for` are the same in all copies; but a service
 * does not know the streams of another copy, and would release their locks at once.
 */
const tokens = new Map<string, symbol>();
const slots = new Map<string, symbol>();

/**
 * Returns the injection token of a module's `LockService`, for `app.get()` and `overrideProvider()`: the class itself
 * for the default module.
 *
 * @param moduleName the `name` of the module; default `'default'`
 */
export function lockServiceToken(moduleName: string = DEFAULT_MODULE): typeof LockService | symbol {
  return moduleName === DEFAULT_MODULE
    ? LockService
    : keptSymbol(tokens, moduleName, (name) => `@InjectLocks(${JSON.stringify(name)}): ${missing(name)}`);
}

/** Returns the property of an object that has the `LockService` of its `@WithLock` methods. */
export function lockServiceSlot(moduleName: string): symbol {
  return keptSymbol(slots, moduleName, missing);
}

function keptSymbol(symbols: Map<string, symbol>, moduleName: string, describe: (name: string) => string): symbol {
  let symbol = symbols.get(moduleName);
  if (!symbol) symbols.set(moduleName, (symbol = Symbol(describe(moduleName))));
  return symbol;
}

/** Describes a symbol. Nest prints the symbol when it can't resolve it, so the description says what to do. */
function missing(moduleName: string): string {
  const call = `forRoot(${moduleName === DEFAULT_MODULE ? '' : `{ name: ${JSON.stringify(moduleName)} }`})`;
  return `LockService of RedisLockModule.${call}; in a test, import LockTestingModule.${call}`;
}
