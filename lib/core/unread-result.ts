import { EventEmitter } from 'node:events';
import { Stream } from 'node:stream';

/** The elements of an array that are looked at: one that has a stream in it has few. */
const INDEXES = [0, 1, 2, 3, 4, 5, 6, 7];

/** Where a plain object has its stream. To list the names of a large one takes long. */
const NAMES = ['stream', 'file', 'body', 'Body', 'data', 'content', 'response', 'process', 'child', 'socket'];

/** An emitter whose error is kept until its caller listens. */
class HeardEmitter {
  readonly #emitter: EventEmitter;
  #failure: { readonly error: unknown } | undefined;
  readonly #failed = (error: unknown): void => void (this.#failure ??= { error });

  constructor(emitter: EventEmitter) {
    this.#emitter = emitter;
    ignoringErrors(() => emitter.on('error', this.#failed));
  }

  /**
   * Stops listening. An emitter that is no stream may go on after an error: it emits it again, to who listens then.
   *
   * @returns how a stream has failed
   */
  stop(): { readonly error: unknown } | undefined {
    const emitter = this.#emitter;
    ignoringErrors(() => emitter.off('error', this.#failed));
    const failure = this.#failure;
    if (!failure || emitter instanceof Stream) return failure;
    setImmediate(() => emitter.listenerCount('error') > 0 && emitter.emit('error', failure.error));
    return undefined;
  }
}

/** A result with emitters, such as Node streams, that its caller has not got yet. */
class UnreadResult<T> {
  readonly #value: T;
  readonly #emitters: readonly HeardEmitter[];

  constructor(value: T, emitters: readonly EventEmitter[]) {
    this.#value = value;
    this.#emitters = emitters.map((emitter) => new HeardEmitter(emitter));
  }

  /**
   * Returns the result for its caller.
   *
   * @throws the error of a stream that has failed meanwhile
   */
  take(): T {
    const failure = this.#emitters.map((emitter) => emitter.stop()).find((found) => found !== undefined);
    if (failure) throw failure.error;
    return this.#value;
  }
}

/**
 * Listens for the errors of emitters that work has returned, alone or in a plain object or short array, while the lock
 * is released: the caller can't yet, and an error that nobody listens for ends the process. If the lock is lost, nobody
 * ever will, and this goes on.
 */
export function unreadResult<T>(value: T): UnreadResult<T> | undefined {
  if (typeof value !== 'object' || value === null) return undefined;
  const emitters = [value, ...partsOf(value)].filter(isUnheard);
  return emitters.length > 0 ? new UnreadResult(value, emitters) : undefined;
}

/** Returns the parts of a plain object or array that may be streams. A getter of the app is no part. */
function partsOf(value: object): unknown[] {
  try {
    if (Array.isArray(value)) return value.length > INDEXES.length ? [] : valuesAt(value, INDEXES);
    return Object.getPrototypeOf(value) === Object.prototype ? valuesAt(value, NAMES) : [];
  } catch {
    return [];
  }
}

function valuesAt(object: object, names: readonly PropertyKey[]): unknown[] {
  return names.map((name) => Object.getOwnPropertyDescriptor(object, name)?.value as unknown);
}

function isUnheard(value: unknown): value is EventEmitter {
  try {
    return value instanceof EventEmitter && value.listenerCount('error') === 0;
  } catch {
    return false;
  }
}

/** Calls a function that uses an object of the app, which may be a mock, or a Proxy that throws at any access. */
export function ignoringErrors(call: () => void): void {
  try {
    call();
  } catch {
    // The caller gets the object, or an error that matters more.
  }
}
