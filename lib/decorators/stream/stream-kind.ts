import { StreamableFile } from '@nestjs/common';
import { Observable } from 'rxjs';

/** The property that a procedure of oRPC has. */
const PROCEDURE = '~orpc';

/** A property that no object has, except one that claims to have all. */
const NOTHING = Symbol('nothing');

/** Tells whether a value is an Observable of rxjs, of this copy or of another one. */
export function isObservable(value: unknown): value is Observable<unknown> {
  return isObject(value) && (isInstance(value, Observable) || hasMethods(value, 'lift', 'subscribe'));
}

/** Tells whether a value is an Observable of another library, or a store that can be read as one. */
export function isForeignObservable(value: unknown): boolean {
  if (!isObject(value) || isObservable(value)) return false;
  const { observable } = Symbol as { readonly observable?: symbol };
  return hasMethods(value, '@@observable') || (observable !== undefined && hasMethods(value, observable));
}

/**
 * Tells whether a value is an async iterator: its `next()` returns what `for await` over it returns. Cursors of
 * databases have a `next()`, too, but theirs returns rows. That of Mongoose is a Node stream besides, and the streams
 * of LangChain are web streams with a `next()`.
 */
export function isAsyncIterator(value: unknown): value is AsyncIterableIterator<unknown> {
  return (
    isObject(value) &&
    hasMethods(value, Symbol.asyncIterator, 'next') &&
    !hasMethods(value, ...OF_NODE_STREAMS) &&
    !hasMethods(value, ...OF_WEB_STREAMS) &&
    !isCursor(value)
  );
}

/** Tells whether `for await` can read a value. */
export function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return isObject(value) && hasMethods(value, Symbol.asyncIterator);
}

/** Tells whether a value is a file that Nest sends. */
export function isFile(value: unknown): value is StreamableFile {
  return isObject(value) && isInstance(value, StreamableFile);
}

/** Recognizes Node streams, web streams, streams of API clients, and cursors of databases. */
export function isOtherStream(value: unknown): boolean {
  if (!isObject(value)) return false;
  return isFile(value) || isStreamedResponse(value) || (isAsyncIterable(value) && !isAsyncIterator(value));
}

/** Tells whether a value is a function, a procedure of oRPC, or a plain object of nothing else. It calls no getter. */
export function isCallable(value: unknown): boolean {
  if (typeof value === 'function') return true;
  if (!isObject(value)) return false;
  try {
    if (NOTHING in value) return false;
    if (inherited(value, PROCEDURE)) return true;
    if (Object.getPrototypeOf(value) !== Object.prototype) return false;
    const names = Object.keys(value);
    return names.length > 0 && names.every((name) => isCallable(Object.getOwnPropertyDescriptor(value, name)?.value));
  } catch {
    return false;
  }
}

/** A web `Response` whose body is a stream of the user's, or comes from `fetch()`. */
function isStreamedResponse(value: object): boolean {
  if (!isInstance(value, Response)) return false;
  try {
    const { body, type } = value as Response;
    return body !== null && (type !== 'default' || !isByteStream(body));
  } catch {
    return false;
  }
}

/** Whether a stream is one of bytes, as Node makes of a text, JSON or a buffer that a `Response` is made of. */
function isByteStream(stream: ReadableStream): boolean {
  try {
    stream.getReader({ mode: 'byob' }).releaseLock();
    return true;
  } catch {
    return false;
  }
}

/** The methods that show a readable stream of Node, or of a library such as `readable-stream`. */
const OF_NODE_STREAMS = ['on', 'pipe', 'read'] as const;

/** The methods that show a `ReadableStream`, of any realm or polyfill. */
const OF_WEB_STREAMS = ['getReader', 'pipeThrough'] as const;

/**
 * The methods that show a cursor, beside `next()`. A generator may have them too, from a polyfill, and so may an
 * iterator of the user, but those return themselves.
 */
const OF_CURSORS = ['hasNext', 'toArray', 'forEach', 'eachAsync', 'close'] as const;

/** In doubt a value is no cursor: an iterator that is taken for one would be read without its lock. */
const isCursor = (value: object): boolean =>
  OF_CURSORS.some((name) => hasMethods(value, name)) && !returnsItself(methodOf(value, Symbol.asyncIterator));

/** The counters that Istanbul puts before each statement. */
const COUNTERS = /\bcov_\w+(?:\(\))?\.[fsb]\[\d+\](?:\[\d+\])?\+\+[;,]?\s*/g;

/**
 * The source of `[Symbol.asyncIterator]` where it returns the object itself: that of all generators, of any realm, and
 * of others that return `this`, or a variable that they close over.
 */
const RETURNS_ITSELF = [
  /^function \[Symbol\.asyncIterator\]\(\) \{ \[native code\] \}$/,
  /\breturn this;?\s*\}$/,
  /\(\)\s*(?:=>)?\s*\{\s*return [\w$]+;?\s*\}$/,
  /^\(\)\s*=>\s*[\w$]+$/,
];

/** Reads the source of a method, because a call could begin a query. */
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
 * Tells whether an object really has these methods, its own or inherited. It reads only descriptors of the user's
 * object: a mock has every property, a getter may do work, and a Proxy may throw.
 */
function hasMethods(value: object, ...names: readonly PropertyKey[]): boolean {
  try {
    return !(NOTHING in value) && names.every((name) => typeof inherited(value, name)?.value === 'function');
  } catch {
    return false;
  }
}

/** Returns a method that `hasMethods()` has found. A Proxy may have changed its mind since then. */
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
