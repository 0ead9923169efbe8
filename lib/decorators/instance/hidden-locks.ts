import { mistake } from '../../errors/mistakes.js';
import { fieldSource, ownMethod } from '../source/class-source.js';
import { shownMethod } from '../method/method-name.js';
import { hasLockMark, isLockedMethod } from '../method/lock-mark.js';
import { lockedMethods } from '../method/locked-methods.js';
import { contains } from '../source/source-nodes.js';
import { bindsOwn, callsSuper, functionCallsSuper } from '../source/super-calls.js';
import { isTestDouble } from './test-double.js';

/** A method whose lock something hides, so that a call would not take it. */
export interface HiddenLock {
  readonly name: string | symbol;
  readonly mistake: string;
}

/** The method that a call comes to first, and those above it, which it may call by `super`. */
export function* ownersOf(prototype: object, name: string | symbol): Generator<object> {
  for (const owner of chainOf(prototype)) if (Object.hasOwn(owner, name)) yield owner;
}

/** Where a method that is called on an object with this prototype is found. */
export function ownerOf(prototype: object, name: string | symbol): object | undefined {
  return ownersOf(prototype, name).next().value as object | undefined;
}

/** The locks that the classes of an object hide. */
export function hiddenByClass(prototype: object): readonly HiddenLock[] {
  return namesOf(prototype).flatMap((name) => {
    const text = fieldOf(prototype, name) ?? hidingOverride(prototype, name);
    return text === undefined ? [] : [{ name, mistake: text }];
  });
}

/** The locks that an object hides by properties of its own: class fields, and what a constructor has put there. */
export function hiddenByObject(instance: object): readonly HiddenLock[] {
  const prototype = Object.getPrototypeOf(instance) as object;
  return namesOf(prototype).flatMap((name) => {
    if (!Object.hasOwn(instance, name) || isHarmless(instance, name)) return [];
    const what = `The property ${String(name)} of a ${prototype.constructor.name}`;
    return [{ name, mistake: hidden(prototype, what, name) }];
  });
}

function namesOf(prototype: object): readonly (string | symbol)[] {
  return [...new Set(lockedMethods(prototype).map(({ name }) => name))];
}

function isLockedAt(prototype: object, owner: object, name: string | symbol): boolean {
  return lockedMethods(prototype).some((method) => method.owner === owner && method.name === name);
}

/** An override hides the lock of the method it overrides, unless it has one itself or calls that method. */
function hidingOverride(prototype: object, name: string | symbol): string | undefined {
  for (const owner of ownersOf(prototype, name)) {
    if (isLockedAt(prototype, owner, name)) return undefined;
    const method = ownMethod(owner, name);
    if (isLockedMethod(method) || isTestDouble(method)) return undefined;
    const goesOn = callsSuper(owner, name);
    if (goesOn) continue;
    if (goesOn === false) return overridden(prototype, owner, name);
    // The class has no such method of its own, so what has the mark wraps the method that it inherits.
    if (hasLockMark(method)) return undefined;
    return hidden(prototype, `What stands in ${shownMethod(owner, name)}`, name);
  }
  return undefined;
}

/** The source tells which fields those objects are going to have that are built later, such as for a request. */
function fieldOf(prototype: object, name: string | symbol): string | undefined {
  for (const owner of classesBelowLock(prototype, name)) {
    const value = fieldSource(owner, name)?.value;
    // What has the method in it may be the method, or call it: the object itself will tell.
    const mayBeLocked = contains(value, ({ type }) => type === 'Super' || type === 'ThisExpression');
    if (value !== undefined && !mayBeLocked) return overridden(prototype, owner, name);
  }
  return undefined;
}

function* classesBelowLock(prototype: object, name: string | symbol): Generator<object> {
  for (const owner of chainOf(prototype)) {
    if (isLockedAt(prototype, owner, name)) return;
    yield owner;
  }
}

function* chainOf(prototype: object): Generator<object> {
  for (let owner = prototype as object | null; owner; owner = Object.getPrototypeOf(owner) as object | null)
    yield owner;
}

/** Whether a property of an object takes the lock of the method it hides, or is there for a test. */
function isHarmless(instance: object, name: string | symbol): boolean {
  const method = ownMethod(instance, name);
  if (typeof method !== 'function') return false;
  if (isLockedMethod(method) || hasLockMark(method) || isTestDouble(method)) return true;
  const prototype = Object.getPrototypeOf(instance) as Record<string | symbol, unknown>;
  const hiddenMethod = prototype[name];
  // A decorator above @WithLock has put a function of its own around it. What is bound then does not show of what it
  // is, but the source does.
  const isWrapped = typeof hiddenMethod === 'function' && !isLockedMethod(hiddenMethod);
  if (isWrapped && method.name === `bound ${hiddenMethod.name}`)
    return [...chainOf(prototype)].some((owner) => bindsOwn(owner, name));
  const text = Function.prototype.toString.call(method);
  return [...classesBelowLock(prototype, name)].some((owner) => functionCallsSuper(owner, name, text));
}

function overridden(prototype: object, owner: object, name: string | symbol): string {
  const locked = lockedMethods(prototype).filter((method) => method.name === name);
  const what = `${shownMethod(owner, name)} overrides ${shownMethod(locked[0]!.owner, name)}`;
  return mistake(`${what}, which has @WithLock, and would run without the lock.`, [
    `Put @WithLock on ${shownMethod(owner, name)} too.`,
    ...(locked.some(({ scope }) => scope === 'request') ? [] : [`Call super.${String(name)}() in it.`]),
    'If it needs no lock, give it another name.',
  ]);
}

/** Where the source does not say what stands there. */
function hidden(prototype: object, what: string, name: string | symbol): string {
  const { owner } = lockedMethods(prototype).find((method) => method.name === name)!;
  return mistake(
    `${what} hides ${shownMethod(owner, name)}, which has @WithLock, and nothing shows that it takes the lock.`,
    [
      'If it wraps that method, let it copy the metadata: what Reflect.getMetadataKeys() has for the one, set on the other.',
      'Write it as a method of the class, with @WithLock or with a call of the method that it overrides by super.',
      'In a test, use a mock function of Jest, Vitest, Sinon or node:test.',
    ],
  );
}
