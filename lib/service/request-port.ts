import { goneAfterWork } from '../core/nesting/lock-context.js';
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
  watch: () => () => undefined,
  isRunning: () => false,
  isOver: () => false,
  attachError: (error) => error,
  changesErrors: false,
};

/**
 * Makes the function that lists the signals that end the wait of a call: the signal of its options, and that of the
 * request it belongs to.
 */
export function waitSignalsWith(requests: RequestPort): (this: LockRequest) => readonly AbortSignal[] {
  return function (this: LockRequest) {
    return given(
      this.signal,
      goneAfterWork((isInside) => requests.waitSignal(isInside)),
    );
  };
}

/** Lists the signals that there are. */
export const given = (...signals: readonly (AbortSignal | undefined)[]): readonly AbortSignal[] =>
  signals.filter((signal) => signal !== undefined);
