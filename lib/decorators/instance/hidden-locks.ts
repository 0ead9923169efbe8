import { types } from 'node:util';
import { mistake } from '../../errors/mistakes.js';
import { hasLockMark, isLockedMethod } from '../method/lock-mark.js';
import { isLockedAt, lockedMethods } from '../method/locked-methods.js';
import { className, shownMethod } from '../method/method-name.js';
import { classPrototypeOf, ownerOf, ownersOf, prototypesOf } from '../method/prototypes.js';
import { fieldSource, isFunction } from '../source/class-source.js';
import { ownMethod } from '../source/class-text.js';
import { contains } from '../source/source-nodes.js';
import { bindsOwn, callsSuper, functionCallsSuper } from '../source/super-calls.js';
import { isTestDouble } from './test-double.js';

/** A method whose lock something hides, so a call would not take it. */
export interface HiddenLock {
  readonly name: string | symbol;
  readonly mistake: string;
}

/** Finds the locks that the classes of an object hide. */
export function hiddenByClass(prototype: object): readonly HiddenLock[] {
  return lockedNames(prototype).flatMap((name) => {
    const mistake = hidingField(prototype, name) ?? hidingOverride(prototype, name);
    return mistake === undefined ? [] : [{ name, mistake }];
  });
}

/** Finds the locks that the own properties of an object hide: class fields, and what a constructor has set. */
export function hiddenByObject(instance: object): readonly HiddenLock[] {
  const prototype = classPrototypeOf(instance) ?? instance;
  return lockedNames(prototype).flatMap((name) => {
    if (!Object.hasOwn(instance, name) || isHarmless(instance, name)) return [];
    const what = `The property ${String(name)} of a ${className(prototype)}`;
    return [{ name, mistake: hides(prototype, what, name) }];
  });
}

function lockedNames(prototype: object): readonly (string | symbol)[] {
  return [...new Set(lockedMethods(prototype).map(({ name }) => name))];
}

/** An override hides the lock of the method that it overrides, unless it has a lock itself or calls that method. */
function hidingOverride(prototype: object, name: string | symbol): string | undefined {
  for (const owner of ownersOf(prototype, name)) {
    if (isLockedAt(prototype, owner, name)) return undefined;
    const method = ownMethod(owner, name);
    if (isLockedMethod(method) || isTestDouble(method)) return undefined;
    const goesUp = callsSuper(owner, name);
    if (goesUp) continue;
    if (goesUp === false) return overrides(prototype, owner, name);
    // The source of the class has no such method, so a function with the mark wraps the inherited method.
    if (hasLockMark(method)) return undefined;
    return hides(
      prototype,
      `The value at ${shownMethod(owner, name)}`,
      name,
      `${AS_METHOD} A tool may wrap that one without its metadata, as Sentry does with process() of BullMQ.`,
    );
  }
  return undefined;
}

/**
 * The source shows functions in the fields of objects that are built later, such as for a request. The object itself
 * shows what else a field is filled with, such as by a call, which may make a mock function.
 */
function hidingField(prototype: object, name: string | symbol): string | undefined {
  for (const owner of prototypesBelowLock(prototype, name)) {
    const value = fieldSource(owner, name)?.value;
    // A function that mentions `this` or `super` may call the method: the object itself will show.
    const mayBeLocked = contains(value, ({ type }) => type === 'Super' || type === 'ThisExpression');
    if (value && isFunction(value) && !mayBeLocked) return overrides(prototype, owner, name);
  }
  return undefined;
}

function* prototypesBelowLock(prototype: object, name: string | symbol): Generator<object> {
  for (const owner of prototypesOf(prototype)) {
    if (isLockedAt(prototype, owner, name)) return;
    yield owner;
  }
}

/** Returns the own property of an object. A Proxy may show one without its value, as a client of Prisma does. */
export function ownValue(instance: object, name: string | symbol): unknown {
  const method = ownMethod(instance, name);
  const isUnshown = method === undefined && types.isProxy(instance) && Object.hasOwn(instance, name);
  return isUnshown ? (Reflect.get(instance, name) as unknown) : method;
}

/** Tells whether a property of an object takes the lock of the method that it hides, or belongs to a test. */
function isHarmless(instance: object, name: string | symbol): boolean {
  const method = ownValue(instance, name);
  if (typeof method !== 'function') return false;
  if (isLockedMethod(method) || hasLockMark(method) || isTestDouble(method)) return true;
  const prototype = classPrototypeOf(instance) ?? instance;
  const owner = ownerOf(prototype, name);
  const hiddenMethod = owner && ownMethod(owner, name);
  if (method === hiddenMethod) return true;
  // A decorator above @WithLock has wrapped it. A bound function does not show what it was bound from; the source does.
  const isWrapped = typeof hiddenMethod === 'function' && !isLockedMethod(hiddenMethod);
  if (isWrapped && method.name === `bound ${hiddenMethod.name}`)
    return [...prototypesOf(prototype)].some((owner) => bindsOwn(owner, name));
  const text = Function.prototype.toString.call(method);
  return [...prototypesBelowLock(prototype, name)].some((owner) => functionCallsSuper(owner, name, text));
}

function overrides(prototype: object, owner: object, name: string | symbol): string {
  const locked = lockedMethods(prototype).filter((method) => method.name === name);
  const what = `${shownMethod(owner, name)} overrides ${shownMethod(locked[0]!.owner, name)}`;
  return mistake(`${what}, which has @WithLock, and would run without the lock.`, [
    `Put @WithLock on ${shownMethod(owner, name)} too.`,
    ...(locked.some(({ scope }) => scope === 'request') ? [] : [`Call super.${String(name)}() in it.`]),
    'If it needs no lock, give it another name.',
  ]);
}

const AS_METHOD =
  'Write it as a method of the class, with @WithLock or with a super call of the method that it overrides.';

/** Describes a value whose source does not show whether it takes the lock. */
function hides(prototype: object, what: string, name: string | symbol, asMethod = AS_METHOD): string {
  const { owner } = lockedMethods(prototype).find((method) => method.name === name)!;
  return mistake(
    `${what} hides ${shownMethod(owner, name)}, which has @WithLock, and nothing shows that it takes the lock.`,
    [
      'If it wraps that method, copy the metadata to the wrapper: all keys that Reflect.getMetadataKeys() lists.',
      asMethod,
      'In a test, use a mock function of Jest, Vitest, Sinon or node:test.',
    ],
  );
}
