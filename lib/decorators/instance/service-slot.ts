import { LockOptionsError } from '../../errors/lock-options.error.js';
import { mistakeList } from '../../errors/mistakes.js';
import { refuseCalls } from '../call/around-call.js';
import type { Method } from '../method/checked-method.js';
import { lockedMethodsOf } from '../method/locked-methods.js';
import { classPrototypeOf } from '../method/prototypes.js';
import { hiddenByClass, hiddenByObject, ownValue, type HiddenLock } from './hidden-locks.js';

/** The functions that refuse calls in place of methods whose lock is hidden, with the reason. */
const refusals = new WeakMap<object, string>();

/** Checks each object before it is used: Nest sets the slot of each object that it builds, at boot or later. */
export function defineSlot(prototype: object, slot: symbol): void {
  if (slot in prototype) return;
  Object.defineProperty(prototype, slot, {
    configurable: true,
    set(this: object, service: unknown) {
      giveService(this, slot, service);
    },
  });
}

/**
 * Gives an object the `LockService` of its methods, and makes those methods refuse calls whose lock is hidden.
 *
 * @returns false where the object is frozen
 * @throws LockOptionsError where a lock is hidden, and its calls can't be refused
 */
export function giveService(instance: object, slot: symbol, value: unknown): boolean {
  refuseHidden(instance);
  if (!Object.isExtensible(instance) && !Object.hasOwn(instance, slot)) return false;
  // Writable, because an object given by useValue can live on in the next app of a test.
  // Enumerable, like properties that Nest injects: a copy that Object.assign() fills has its locks, too.
  return Reflect.defineProperty(instance, slot, { value, writable: true, enumerable: true, configurable: true });
}

/** Returns the reasons why calls of an object are refused: its own properties, or the methods of its classes. */
export function refusedCalls(instance: object): readonly string[] {
  const locked = lockedMethodsOf(instance);
  if (locked.length === 0) return [];
  const refused = locked.flatMap(({ name }) => refusalAt(instance, name) ?? []);
  const others = hiddenByObject(instance).filter(({ name }) => refusalAt(instance, name) === undefined);
  return [...refused, ...others.map(({ mistake }) => mistake)];
}

function refusalAt(instance: object, name: string | symbol): string | undefined {
  const method = ownValue(instance, name);
  return typeof method === 'function' ? refusals.get(method) : undefined;
}

function refuseHidden(instance: object): void {
  const hidden = [...hiddenByClass(classPrototypeOf(instance) ?? instance), ...hiddenByObject(instance)];
  const open = hidden.filter((one) => refusalAt(instance, one.name) === undefined && !refuse(instance, one));
  if (open.length > 0) throw new LockOptionsError(mistakeList(open.map(({ mistake }) => mistake)));
}

function refuse(instance: object, { name, mistake }: HiddenLock): boolean {
  const { kind } = lockedMethodsOf(instance).find((method) => method.name === name)!;
  const around = refuseCalls(new LockOptionsError(mistake), kind);
  const method: Method = (...args) => around(method, instance, args);
  refusals.set(method, mistake);
  return Reflect.defineProperty(instance, name, { value: method, writable: true, configurable: true });
}
