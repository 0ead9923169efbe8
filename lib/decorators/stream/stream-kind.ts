import { StreamableFile } from '@nestjs/common';
import { Observable } from 'rxjs';

/** Nothing has it, but for what says that it has everything. */
const NOTHING = Symbol('nothing');

/** Of our copy of rxjs, or of another. */
export function isObservable(value: unknown): value is Observable<unknown> {
  return isObject(value) && (isInstance(value, Observable) || hasMethods(value, 'lift', 'subscribe'));
}

/** An Observable of another library. */
export function isForeignObservable(value: unknown): boolean {
  if (!isObject(value) || isObservable(value)) return false;
  const { observable } = Symbol as { readonly observable?: symbol };
  return hasMethods(value, '@@observable') || (observable !== undefined && hasMethods(value, observable));
}

/**
 * Whose `next()` gives what a `for await` over it gives: all that have one, but for a cursor of a database, whose
 * `next()` gives rows.
 */
export function isAsyncIterator(value: unknown): value is AsyncIterator<unknown> {
  return isObject(value) && hasMethods(value, Symbol.asyncIterator, 'next') && !isCursor(value);
}

/** What can be read by `for await`, itself or by an iterator that it makes. */
export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return isObject(value) && hasMethods(value, Symbol.asyncIterator);
}

/** Node streams, web streams, streams of API clients, cursors of databases. */
export function isOtherStream(value: unknown): boolean {
  return isObject(value) && (isInstance(value, StreamableFile) || (isAsyncIterable(value) && !isAsyncIterator(value)));
}

/**
 * Cursors have one of them, beside `next()`. So may a generator, from a polyfill, and an iterator of the user's: those
 * return themselves.
 */
const OF_CURSORS = ['hasNext', 'toArray', 'forEach', 'eachAsync', 'close'] as const;

/** In doubt it is none: an iterator that is taken for a cursor would be read without its lock. */
const isCursor = (value: object): boolean =>
  OF_CURSORS.some((name) => hasMethods(value, name)) && !returnsItself(methodOf(value, Symbol.asyncIterator));

/** What Istanbul puts before each statement. */
const COUNTERS = /\bcov_\w+(?:\(\))?\.[fsb]\[\d+\](?:\[\d+\])?\+\+[;,]?\s*/g;

/**
 * Of the method that all generators inherit, of any realm, and of others that return the object: `this`, or a variable
 * that they close over.
 */
const RETURNS_ITSELF = [
  /^function \[Symbol\.asyncIterator\]\(\) \{ \[native code\] \}$/,
  /\breturn this;?\s*\}$/,
  /\(\)\s*(?:=>)?\s*\{\s*return [\w$]+;?\s*\}$/,
  /^\(\)\s*=>\s*[\w$]+$/,
];

/** Told by its source, as a call could begin a query. */
function returnsItself(method: unknown): boolean {
  if (typeof method !== 'function') return false;
  const source = Function.prototype.toString.call(method).replace(COUNTERS, '');
  return RETURNS_ITSELF.some((pattern) => pattern.test(source));
}

const isObject = (value: unknown): value is object => typeof value === 'object' && value !== null;

function isInstance(value: object, type: new (...args: never[]) => object): boolean {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}

/**
 * Whether an object really has these methods, its own or inherited. It is a user's: nothing of it is read, as a mock
 * answers to every name, a getter may do work, and a Proxy may throw.
 */
function hasMethods(value: object, ...names: readonly PropertyKey[]): boolean {
  try {
    return !(NOTHING in value) && names.every((name) => typeof inherited(value, name)?.value === 'function');
  } catch {
    return false;
  }
}

/** For what has changed its mind since `hasMethods()`, as a Proxy may. */
function methodOf(value: object, name: PropertyKey): unknown {
  try {
    return inherited(value, name)?.value;
  } catch {
    return undefined;
  }
}

function inherited(value: object, name: PropertyKey): PropertyDescriptor | undefined {
  for (let owner: object | null = value; owner; owner = Object.getPrototypeOf(owner) as object | null) {
    const descriptor = Object.getOwnPropertyDescriptor(owner, name);
    if (descriptor) return descriptor;
  }
  return undefined;
}
