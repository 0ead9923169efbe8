import { classPrototypeOf, prototypesOf } from './prototypes.js';

/** Names the class of a prototype. Anything may stand at `constructor`. */
export function className(prototype: object): string {
  for (const owner of prototypesOf(prototype)) {
    const name = nameAt(owner);
    if (typeof name === 'string') return name;
  }
  return 'object';
}

/** Names the class of an object. */
export function classNameOf(instance: object): string {
  return className(classPrototypeOf(instance) ?? instance);
}

/** Names a method: `AccountService.withdraw`. */
export function methodName(prototype: object, method: string | symbol): string {
  return `${className(prototype)}.${String(method)}`;
}

/** Names a method as messages do: `AccountService.withdraw()`. */
export function shownMethod(prototype: object, method: string | symbol): string {
  return `${methodName(prototype, method)}()`;
}

function nameAt(owner: object): unknown {
  try {
    const type: unknown = Object.getOwnPropertyDescriptor(owner, 'constructor')?.value;
    return typeof type === 'function' ? type.name : undefined;
  } catch {
    return undefined;
  }
}
