import { isReached, lockedMethods, type LockedMethod } from '../decorators/method/locked-methods.js';
import { className, shownMethod } from '../decorators/method/method-name.js';
import type { LockedMethodInfo } from '../service/locked-method-info.js';
import { DEFAULT_MODULE } from '../service/lock.tokens.js';

/** A method with `@WithLock`, and a class of the app whose calls reach it. */
export interface ReachedMethod {
  readonly prototype: object;
  readonly method: LockedMethod;
}

/** Returns the methods with `@WithLock` that calls of these classes reach. */
export function reachedMethods(prototypes: Iterable<object>): readonly ReachedMethod[] {
  return [...prototypes].flatMap((prototype) =>
    lockedMethods(prototype)
      .filter((method) => isReached(prototype, method))
      .map((method) => ({ prototype, method })),
  );
}

/** Describes a method for `LockService.methods()`. */
export function infoOf({ prototype, method: { name, key, scope } }: ReachedMethod): LockedMethodInfo {
  const templates = typeof key === 'function' ? undefined : ([key].flat() as string[]);
  return Object.freeze({ className: className(prototype), method: String(name), templates, scope });
}

/** Writes the debug line of a method. */
export function shownLock({ prototype, method: { name, key, module } }: ReachedMethod): string {
  const templates = [key].flat().map((template) => JSON.stringify(template));
  const keys = typeof key === 'function' ? 'the key that its function returns' : templates.join(' and ');
  const ofModule = module === DEFAULT_MODULE ? '' : ` of the module "${module}"`;
  return `${shownMethod(prototype, name)} locks ${keys}${ofModule}`;
}
