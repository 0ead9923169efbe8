import { EventEmitter } from 'node:events';
import type { Duplex, Readable, Transform } from 'node:stream';
import { leaveUnread } from './result-work.js';

/** How many elements of an array are looked at: one that has a stream in it has few. */
const MOST_ELEMENTS = 8;

/** Where a plain object has its stream. To list the names of a large one takes long. */
const NAMES = ['stream', 'file', 'body', 'Body', 'data', 'content', 'response', 'process', 'child', 'socket'];

/** A result with emitters, such as Node streams, that its caller has not got yet. */
class UnreadResult<T> {
  readonly #value: T;
  readonly #emitters: readonly EventEmitter[];
  #failure: { readonly error: unknown } | undefined;
  readonly #failed = (error: unknown): void => void (this.#failure ??= { error });

  constructor(value: T, emitters: readonly EventEmitter[]) {
    this.#value = value;
    this.#emitters = emitters;
    this.#onEach((emitter) => emitter.on('error', this.#failed));
  }

  /**
   * Stops listening, and returns the result for its caller.
   *
   * @throws the error of an emitter that has failed meanwhile
   */
  take(): T {
    if (this.#failure) throw this.#failure.error;
    this.#onEach((emitter) => emitter.off('error', this.#failed));
    return this.#value;
  }

  #onEach(change: (emitter: EventEmitter) => void): void {
    for (const emitter of this.#emitters) ignoringErrors(() => change(emitter));
  }
}

/**
 * Listens for the errors of emitters that work has returned, alone or in a plain object or a short array, while the lock is
 * released: the caller can't yet, and an error that nobody listens for ends the process.
 */
export function unreadResult<T>(value: T): UnreadResult<T> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const emitters = [value, ...partsOf(value)].filter(isUnheard);
  return emitters.length > 0 ? new UnreadResult(value, emitters) : undefined;
}

/** Returns the parts of a plain object or array that may be streams. A getter of the app is no part. */
function partsOf(value: object): unknown[] {
  try {
    if (Array.isArray(value)) return value.length > MOST_ELEMENTS ? [] : value;
    if (Object.getPrototypeOf(value) !== Object.prototype) return [];
    const names = NAMES.filter((name) => Object.hasOwn(value, name));
    return names.map((name) => Object.getOwnPropertyDescriptor(value, name)?.value as unknown);
  } catch {
    return [];
  }
}

function isUnheard(value: unknown): value is EventEmitter {
  try {
    return value instanceof EventEmitter && value.listenerCount('error') === 0;
  } catch {
    return false;
  }
}

/**
 * Ends what work has returned, and nobody gets because the lock is lost: a stream may hold a file open. What may live
 * longer than the call goes on: a connection, and what somebody reads already.
 */
export function closeUnread(value: unknown): void {
  leaveUnread(value);
  ignoringErrors(() => {
    if (!isReadable(value)) cancel(value);
    else if (isUnread(value) && !isConnection(value)) destroy(value);
  });
}

/**
 * Closes a stream, even one that somebody reads.
 *
 * @returns whether it is a stream of Node, a web stream or a `Response`
 */
export function close(value: unknown): boolean {
  if (!isReadable(value)) return cancel(value);
  destroy(value);
  return true;
}

function destroy(stream: Readable): void {
  // What has not begun may fail still, and nobody listens.
  stream.on('error', () => undefined);
  stream.destroy();
}

/** Calls a function that uses an object of the app, which may be a mock, or a Proxy that throws at any access. */
export function ignoringErrors(call: () => void): void {
  try {
    call();
  } catch {
    // The caller gets the object, or an error that matters more.
  }
}

function cancel(value: unknown): boolean {
  const stream = isA(Response, value) ? value.body : value;
  if (!isA(ReadableStream, stream)) return stream !== value;
  if (!stream.locked) stream.cancel().catch(() => undefined);
  return true;
}

/** Whether it is a readable stream of Node, or of a library such as `readable-stream`. */
function isReadable(value: unknown): value is Readable {
  if (!isA(EventEmitter, value)) return false;
  const { pipe, read, destroy } = value as Partial<Readable>;
  return [pipe, read, destroy].every((method) => typeof method === 'function');
}

const isUnread = ({ readableFlowing, readableDidRead }: Partial<Readable>): boolean =>
  (readableFlowing ?? null) === null && !readableDidRead;

const isConnection = (stream: Readable): boolean =>
  typeof (stream as Partial<Duplex>).write === 'function' &&
  typeof (stream as Partial<Transform>)._transform !== 'function';

/** Whether it is of a class. A Proxy of the app may throw at any access. */
function isA<T>(type: abstract new (...args: never[]) => T, value: unknown): value is T {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}
