import { LockOptionsError } from '../../errors/lock-options.error.js';
import { mistakeList } from '../../errors/mistakes.js';
import { refuseCalls } from '../call/around-call.js';
import type { Method } from '../method/checked-method.js';
import { lockedMethods } from '../method/locked-methods.js';
import { hiddenByClass, hiddenByObject, type HiddenLock } from './hidden-locks.js';

/** What stands on an object in the place of methods that would run without their lock, and why. */
const refusals = new WeakMap<object, string>();

/** Nest sets the slot of each object that it builds, whenever that is: so each of them is checked before it is used. */
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
 * Gives an object the `LockService` of its methods, and lets those refuse their calls whose lock is lost.
 *
 * @returns false where the object is frozen
 * @throws LockOptionsError where a lock is lost, and its calls can't be refused
 */
export function giveService(instance: object, slot: symbol, value: unknown): boolean {
  refuseHidden(instance);
  if (!Object.isExtensible(instance) && !Object.hasOwn(instance, slot)) return false;
  // Writable, as an object given by useValue can live on in the next app of a test.
  // Enumerable, as what Nest injects is: so a copy of the object that Object.assign() fills has its locks, too.
  return Reflect.defineProperty(instance, slot, { value, writable: true, enumerable: true, configurable: true });
}

/** What is wrong with an object: with properties of its own, or with the methods of its classes. */
export function refusedCalls(instance: object): readonly string[] {
  const told = lockedMethods(instance).flatMap(({ name }) => refusedAt(instance, name) ?? []);
  const others = hiddenByObject(instance).filter(({ name }) => refusedAt(instance, name) === undefined);
  return [...told, ...others.map(({ mistake }) => mistake)];
}

function refusedAt(instance: object, name: string | symbol): string | undefined {
  const method: unknown = Object.getOwnPropertyDescriptor(instance, name)?.value;
  return typeof method === 'function' ? refusals.get(method) : undefined;
}

function refuseHidden(instance: object): void {
  const lost = [...hiddenByClass(Object.getPrototypeOf(instance) as object), ...hiddenByObject(instance)];
  const open = lost.filter((one) => refusedAt(instance, one.name) === undefined && !refuse(instance, one));
  if (open.length > 0) throw new LockOptionsError(mistakeList(open.map(({ mistake }) => mistake)));
}

function refuse(instance: object, { name, mistake }: HiddenLock): boolean {
  const { kind } = lockedMethods(instance).find((method) => method.name === name)!;
  const around = refuseCalls(new LockOptionsError(mistake), kind);
  const method: Method = (...args) => around(method, instance, args);
  refusals.set(method, mistake);
  return Reflect.defineProperty(instance, name, { value: method, writable: true, configurable: true });
}
