import { type LockNode, workOfCaller } from '../core/nesting/lock-context.js';
import type { LockRequest } from '../core/request/lock-request.js';

/** Tells a `LockService` about the requests that its callers handle, such as those of HTTP. */
export interface RequestPort {
  /**
   * Returns a signal that aborts when nobody waits for the response of the current request any more; undefined outside
   * of a request. It ends waits once: after that it is undefined, too.
   *
   * @param isInside whether the wait goes on in spite of it
   */
  waitSignal(isInside?: boolean): AbortSignal | undefined;
  /** Whether a lock is around the whole of the current request, such as that of a middleware. */
  isAround(node: LockNode): boolean;
  /**
   * Looks, until the current request is over, whether anybody still waits for its response: for a stream, which is read
   * for as long as somebody does.
   *
   * @param whenOver is called when the request is over
   * @returns a function that keeps it from being called
   */
  watch(whenOver: () => void): () => void;
  /** Whether there is a current request, and it is not over. */
  isRunning(): boolean;
  /** Whether the current request has its response, or nobody waits for it any more; false outside of a request. */
  isOver(): boolean;
  /**
   * Notes that work is asked for in the current request that another try of the request would repeat.
   *
   * @returns a function that tells whether that begins, or was refused; undefined outside of a request
   */
  noteWork(): ((begins: boolean) => void) | undefined;
  /**
   * Attaches an error that is about to be thrown to the current request, whose response it may become; returns the
   * error.
   */
  attachError<E>(error: E): E;
  /** Whether `attachError` changes errors, so that no two calls may share one. */
  readonly changesErrors: boolean;
}

/** For a service outside of Nest: no call belongs to a request. */
export const NO_REQUESTS: RequestPort = {
  waitSignal: () => undefined,
  isAround: () => false,
  watch: () => () => undefined,
  isRunning: () => false,
  isOver: () => false,
  noteWork: () => undefined,
  attachError: (error) => error,
  changesErrors: false,
};

/**
 * Makes a function for calls that begin: it returns what lists the signals that end the wait of the call, which are
 * that of its options, and that of its request. Work that holds a key alone goes on to its end without a caller, and so
 * do the waits that it begins, also if they last longer. But what an Observable has begun can't be stopped when its
 * reader leaves: what still waits then, ends.
 */
export function waitSignalsWith(requests: RequestPort): () => LockRequest['waitSignals'] {
  const isAround = (node: LockNode): boolean => requests.isAround(node);
  // One for all calls outside of locks: one for each would cost too much.
  const outside = function (this: LockRequest): readonly AbortSignal[] {
    return given(this.signal, requests.waitSignal());
  };
  return () => {
    const work = workOfCaller(isAround);
    if (!work) return outside;
    // Not when it first waits: its work may have ended by then.
    const gone = requests.waitSignal(true);
    const end = gone && work.endOfWaits(gone, isAround);
    return function (this: LockRequest) {
      return given(this.signal, end);
    };
  };
}

/** Lists the signals that there are. */
export const given = (...signals: readonly (AbortSignal | undefined)[]): readonly AbortSignal[] =>
  signals.filter((signal) => signal !== undefined);
