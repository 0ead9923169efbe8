import { isUnboundLockedMethod } from '../decorators/method/lock-mark.js';
import { lockedMethods } from '../decorators/method/locked-methods.js';
import { className, shownMethod } from '../decorators/method/method-name.js';
import { prototypesOf } from '../decorators/method/prototypes.js';
import { mistake } from '../errors/mistakes.js';

/**
 * Finds methods with `@WithLock` that a mixin has copied from another class. Nest gives the objects of a class their
 * `LockService` by the metadata of the class, which stays behind.
 */
export function copiedMethods(prototype: object): readonly string[] {
  // What has locks of its own has a `LockService`, which the copy uses, too.
  if (lockedMethods(prototype).length > 0) return [];
  return [...prototypesOf(prototype)].flatMap((owner) =>
    lockedNamesOf(owner).map((name) => copied(prototype, owner, name)),
  );
}

/** Reads only descriptors, because a getter may do work. A Proxy may refuse to be looked at. */
function lockedNamesOf(owner: object): readonly (string | symbol)[] {
  try {
    return Reflect.ownKeys(owner).filter((name) =>
      isUnboundLockedMethod(Object.getOwnPropertyDescriptor(owner, name)?.value),
    );
  } catch {
    return [];
  }
}

function copied(prototype: object, owner: object, name: string | symbol): string {
  const [type, ownerType] = [className(prototype), className(owner)];
  const what =
    `${shownMethod(owner, name)} was copied from another class with its @WithLock, ` +
    `but Nest gives a ${type} no LockService, so every call would be refused.`;
  return mistake(what, [
    `Let ${type} extend that class, or call it.`,
    `Write the method in ${ownerType}, with @WithLock.`,
  ]);
}
