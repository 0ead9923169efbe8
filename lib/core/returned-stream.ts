import { Readable } from 'node:stream';

/** A Node stream that work has returned, and that its caller has not got yet. */
class UnreadStream {
  readonly #stream: Readable;
  #failure: { readonly error: unknown } | undefined;
  readonly #failed = (error: unknown): void => void (this.#failure ??= { error });

  constructor(stream: Readable) {
    this.#stream = stream.on('error', this.#failed);
  }

  /**
   * Stops listening when the caller gets it; or closes it, if nobody does.
   *
   * @throws its error, if it has failed meanwhile and somebody wants it
   */
  end(isUnwanted: boolean): void {
    if (isUnwanted) return closeUnread(this.#stream);
    if (this.#failure) throw this.#failure.error;
    this.#stream.off('error', this.#failed);
  }
}

/**
 * Listens for the error of a Node stream that work has returned, while the lock is released: its caller can't yet, and
 * an error that nobody listens for ends the process.
 */
export const unreadStream = (value: unknown): UnreadStream | undefined =>
  isReadable(value) ? new UnreadStream(value) : undefined;

/** Closes a stream that nobody gets: it may hold a file open. */
export function closeUnread(value: unknown): void {
  if (isReadable(value)) {
    // What has not begun may fail still, and nobody listens.
    value.on('error', () => undefined).destroy();
    return;
  }
  const body = isA(Response, value) ? value.body : value;
  if (isA(ReadableStream, body) && !body.locked) body.cancel().catch(() => undefined);
}

const isReadable = (value: unknown): value is Readable => isA(Readable, value);

/** Whether it is of a class. A Proxy of the app may throw at any access. */
function isA<T>(type: abstract new (...args: never[]) => T, value: unknown): value is T {
  try {
    return value instanceof type;
  } catch {
    return false;
  }
}
