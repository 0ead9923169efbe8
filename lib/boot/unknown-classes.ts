import { lockedMethods, lockOwners } from '../decorators/method/locked-methods.js';
import { className, shownMethod } from '../decorators/method/method-name.js';
import { prototypesOf } from '../decorators/method/prototypes.js';
import { mistake } from '../errors/mistakes.js';

/**
 * Finds what to warn of in classes with locked methods that the app does not use: mistakes of a method; and classes
 * without any decorator of Nest, of which the app may make objects itself. A class that others with locked methods
 * extend need have no objects.
 */
export function unknownToNest(known: Pick<ReadonlySet<object>, 'has'>): readonly string[] {
  const unknown = lockOwners().filter((owner) => !known.has(owner));
  const mistakes = unknown.flatMap((owner) => ownMethods(owner).flatMap((method) => method.mistakes ?? []));
  const bases = new Set(lockOwners().flatMap((owner) => [...prototypesOf(owner)].slice(1)));
  const doubtful = unknown.filter((owner) => !bases.has(owner) && isUndecorated(owner.constructor));
  return [...mistakes, ...doubtful.map(withoutObject)];
}

const ownMethods = (owner: object) => lockedMethods(owner).filter((method) => method.owner === owner);

function withoutObject(owner: object): string {
  const type = className(owner);
  const methods = lockedMethods(owner).map(({ name }) => shownMethod(owner, name));
  const what =
    `Nest knows no object of the class ${type} yet, and ${methods.join(', ')} can take a lock only on objects ` +
    'that Nest builds or is given. Calls on others will be refused with LockNotWiredError.';
  return mistake(what, [
    `Make ${type} a provider, and let Nest build it.`,
    `If the app calls "new ${type}()" itself, use LockService.withLock() instead of the decorator.`,
    `If ${type} is only the base of other classes, or Nest makes or gets its objects later, all is well: ` +
      '@Injectable() on it ends this warning.',
  ]);
}

/** The metadata that `@WithLock` and the compiler put on a class. */
const OURS = ['self:properties_metadata', 'design:paramtypes'];

function isUndecorated(type: object): boolean {
  return Reflect.getMetadataKeys(type).every((key) => OURS.includes(key as string));
}
