/** Returns the text of a prototype's class; undefined when there is no class, or a Proxy refuses to be looked at. */
export function classText(prototype: object): string | undefined {
  try {
    return Object.hasOwn(prototype, 'constructor') ? textOf(prototype.constructor) : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the own property of an object, or its getter. Does not call the getter: it may do work. */
export function ownMethod(object: object, name: string | symbol): unknown {
  const property: { readonly get?: unknown; readonly value?: unknown } | undefined = Object.getOwnPropertyDescriptor(
    object,
    name,
  );
  return property?.get ?? property?.value;
}

/** Returns the source of a function, which may have a `toString()` of its own, as a class with a static one does. */
export function textOf(value: unknown): string | undefined {
  return typeof value === 'function' ? Function.prototype.toString.call(value) : undefined;
}
