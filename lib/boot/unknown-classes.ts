import { lockedMethods, lockOwners } from '../decorators/method/locked-methods.js';
import { className, shownMethod } from '../decorators/method/method-name.js';
import { mistake } from '../errors/mistakes.js';

/**
 * Finds what to warn of in classes with locked methods that the app does not use: mistakes of a method; and classes
 * without any decorator of Nest, whose calls will be refused.
 */
export function unknownToNest(known: Pick<ReadonlySet<object>, 'has'>): readonly string[] {
  const unknown = lockOwners().filter((owner) => !known.has(owner));
  const mistakes = unknown.flatMap((owner) => ownMethods(owner).flatMap((method) => method.mistakes ?? []));
  return [...mistakes, ...unknown.filter((owner) => isUndecorated(owner.constructor)).map(notBuiltByNest)];
}

const ownMethods = (owner: object) => lockedMethods(owner).filter((method) => method.owner === owner);

function notBuiltByNest(owner: object): string {
  const type = className(owner);
  const methods = lockedMethods(owner).map(({ name }) => shownMethod(owner, name));
  const what =
    `${methods.join(', ')} can't take a lock: Nest does not know the class ${type}, ` +
    'so calls will be refused with LockNotWiredError.';
  return mistake(what, [
    `Make ${type} a provider, and let Nest build it.`,
    'Use LockService.withLock() instead of the decorator.',
  ]);
}

/** The metadata that `@WithLock` and the compiler put on a class. */
const OURS = ['self:properties_metadata', 'design:paramtypes'];

function isUndecorated(type: object): boolean {
  return Reflect.getMetadataKeys(type).every((key) => OURS.includes(key as string));
}
