import 'reflect-metadata';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { mistake } from '../../errors/mistakes.js';
import { isSourceOf, methodSource } from '../source/class-source.js';
import { ownMethod, textOf } from '../source/class-text.js';
import { plainMethod } from '../source/plain-method.js';
import { methodName } from './method-name.js';
import { isStandard, notLegacy, type StandardContext } from './standard-decorator.js';
import { isAsyncIterator, isObservable } from '../stream/stream-kind.js';
import { isLoweredGenerator, isSynchronous, mentionsGeneratorHelper, passedOn } from '../source/synchronous.js';

export type Method = (...args: unknown[]) => unknown;

/**
 * What a locked method returns before its work is done: a promise, or a stream that begins when it is read.
 * `'unknown'`: one of them, but neither the type nor the source of the method says which.
 */
export type ReturnKind = 'promise' | 'observable' | 'iterator' | 'unknown';

const GENERATOR = '[object AsyncGeneratorFunction]';

/**
 * Returns the method that `@WithLock` stands on.
 *
 * @throws LockOptionsError when it does not stand on a method of an instance
 */
export function checkedMethod(prototype: unknown, name: unknown, descriptor: PropertyDescriptor | undefined): Method {
  if (isStandard(name)) throw name.private ? onPrivate(name) : notLegacy('WithLock', name);
  const where = typeof prototype === 'function' ? `static ${prototype.name}` : (prototype as object).constructor.name;
  if (typeof descriptor?.value !== 'function')
    throw new LockOptionsError(
      `@WithLock stands on ${where}.${String(name)}, which is not a method. Put it on an async method.`,
    );
  if (typeof prototype === 'function') {
    throw new LockOptionsError(
      `@WithLock stands on ${where}.${String(name)}(). Nest injects nothing into a class itself: ` +
        'make it a method of an injectable, or use LockService.',
    );
  }
  return descriptor.value as Method;
}

/**
 * Tells what a method returns, by its declared type and its source.
 *
 * @throws LockOptionsError when it can't return anything that shows when its work ends
 */
export function returnKind(prototype: object, name: string | symbol, method: Method): ReturnKind {
  const { async, generator } = plainMethod(prototype, name) ?? methodSource(prototype, name)?.value ?? {};
  const itself = Object.prototype.toString.call(method);
  if (itself === GENERATOR || (async && generator) || isLowered(prototype, name)) return 'iterator';
  const returns: unknown = Reflect.getMetadata('design:returntype', prototype, name);
  const type: unknown = typeof returns === 'function' ? returns.prototype : undefined;
  if (isObservable(type)) return 'observable';
  if (itself === '[object AsyncFunction]' || isThenable(returns)) return 'promise';
  if (isAsyncIterator(type)) return 'iterator';
  // `undefined` for a declared void, but also where nothing is declared. `Object` for most other types.
  const isOpen = returns === undefined || returns === Object;
  if (!isOpen) throw notAPromise(methodName(prototype, name));
  const source = methodSource(prototype, name);
  if (!source || !isSourceOf(source, prototype, method)) return 'unknown';
  if (isGenerator(prototype, passedOn(source))) return 'iterator';
  if (isSynchronous(source)) throw notAPromise(methodName(prototype, name));
  return 'unknown';
}

/** Tells whether a compiler has made a plain method of an `async *` method. Its type may be that of a promise. */
function isLowered(prototype: object, name: string | symbol): boolean {
  // The parser is loaded only where the text has a helper of such compilers.
  const source = mentionsGeneratorHelper(textOf(ownMethod(prototype, name)) ?? '') && methodSource(prototype, name);
  return source ? isLoweredGenerator(source) : false;
}

function isGenerator(prototype: object, name: string | undefined): boolean {
  return (
    name !== undefined &&
    (Object.prototype.toString.call(Object.getOwnPropertyDescriptor(prototype, name)?.value) === GENERATOR ||
      isLowered(prototype, name))
  );
}

function isThenable(type: unknown): boolean {
  return (
    typeof type === 'function' && typeof (type.prototype as Partial<Promise<unknown>> | undefined)?.then === 'function'
  );
}

export function notAPromise(site: string): LockOptionsError {
  return new LockOptionsError(
    mistake(
      `${site}() does not return a promise, an Observable or an async iterator, ` +
        "so @WithLock can't tell when its work ends.",
      ['Make it async.', 'If it starts work that goes on, return a promise of its end.'],
    ),
  );
}

function onPrivate({ kind, name }: StandardContext): LockOptionsError {
  const what = `@WithLock stands on the private ${kind} ${String(name)}, which nothing can be put around.`;
  return new LockOptionsError(`${what} Make it a method with the keyword "private" instead of "#".`);
}
