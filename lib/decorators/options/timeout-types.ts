import type { LockTimeoutError } from '../../errors/lock-timeout.error.js';

/** What an `onTimeout` function gets. */
export interface LockTimeoutContext<Args extends readonly unknown[] = readonly unknown[]> {
  readonly error: LockTimeoutError;
  /** The arguments of the call that did not run; with `scope: 'request'`, the `ExecutionContext` of the request. */
  readonly args: Args;
}

/**
 * Makes the answer to a time-out. It may ask for arguments of certain types: those of the method are checked against
 * them.
 */
export type TimeoutFallback<Result, Args extends readonly unknown[]> = {
  answer(context: LockTimeoutContext<Args>): Result;
}['answer'];

/** What the caller gets when the wait is over; never, where it gets the error, or nobody knows before the call. */
type Answer<Word, Result> =
  ('throw' extends Word ? never : undefined) | (unknown extends Result ? never : Nothing<Awaited<Result>>);

/** Of a function that returns nothing, the caller gets `undefined`. */
type Nothing<Result> = Result extends void ? undefined : Result;

/**
 * Holds for a method whose callers can get what is answered to a time-out, made from what the method was called with.
 */
export type AllowsFallback<Word, Result, Asked extends readonly unknown[], M extends (...args: never[]) => unknown> =
  M extends (...args: infer Args) => Promise<infer Own>
    ? [Answer<Word, Result>] extends [Own]
      ? [Args] extends [Asked] ? unknown : { 'onTimeout asks for other arguments than the method has': Args }
      : { 'onTimeout answers what the method does not': Answer<Word, Result> }
    : unknown; // prettier-ignore
