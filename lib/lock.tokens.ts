import { wrongValue } from './core/lock-options.js';
import { LockService } from './lock.service.js';

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
  return moduleName === DEFAULT_MODULE ? LockService : Symbol.for(`nest-redis-lock:LockService:${moduleName}`);
}

/**
 * The property under which an object that Nest built carries the `LockService` its `@WithLock` methods use.
 *
 * Nest names it when there is no such service in the app: so it says what is missing.
 */
export function lockServiceSlot(moduleName: string): symbol {
  const name = moduleName === DEFAULT_MODULE ? '' : `{ name: "${moduleName}" }`;
  return Symbol.for(`LockService of RedisLockModule.forRoot(${name})`);
}
