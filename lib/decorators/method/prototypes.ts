/** Returns a prototype and those above it. */
export function* prototypesOf(prototype: object): Generator<object> {
  for (let owner = prototype as object | null; owner; owner = Object.getPrototypeOf(owner) as object | null)
    yield owner;
}

/**
 * Returns the prototypes with a method of this name: the one that a call reaches, and those that it may reach by
 * `super`.
 */
export function* ownersOf(prototype: object, name: string | symbol): Generator<object> {
  for (const owner of prototypesOf(prototype)) if (Object.hasOwn(owner, name)) yield owner;
}

/** Returns the prototype whose method a call reaches. */
export function ownerOf(prototype: object, name: string | symbol): object | undefined {
  return ownersOf(prototype, name).next().value as object | undefined;
}
