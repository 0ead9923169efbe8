import { LockOptionsError } from './lock-options.error.js';

/**
 * Copies options into a plain object, with those of a class or prototype, such as getters, so that no option is
 * ignored. Methods count where they are known options.
 *
 * @throws LockOptionsError for a promise
 */
export function plainOptions<Options extends object>(options: Options, known: readonly string[]): Options {
  const prototype: unknown = Object.getPrototypeOf(options);
  if (prototype === Object.prototype || prototype === null) return options;
  const { then } = options as { readonly then?: unknown };
  if (typeof then === 'function') throw new LockOptionsError("Options can't be a promise: await it first.");
  const names = new Set(Object.keys(options));
  for (let owner = prototype as object; owner && !isRoot(owner); owner = Object.getPrototypeOf(owner) as object) {
    for (const [name, property] of Object.entries(Object.getOwnPropertyDescriptors(owner))) {
      const isOption = 'get' in property || property.enumerable || known.includes(name);
      if (name !== 'constructor' && isOption) names.add(name);
    }
  }
  return Object.fromEntries([...names].map((name) => [name, (options as Record<string, unknown>)[name]])) as Options;
}

/** The `Object.prototype` of any realm. */
function isRoot(object: object): boolean {
  return Object.getPrototypeOf(object) === null && Object.hasOwn(object, 'isPrototypeOf');
}
