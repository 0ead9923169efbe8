import type { LockTimeoutError } from '../../errors/lock-timeout.error.js';

/** What an `onTimeout` function gets. */
export interface LockTimeoutContext<Args extends readonly unknown[] = readonly unknown[]> {
  readonly error: LockTimeoutError;
  /** The arguments of the call that did not run; with `scope: 'request'`, the `ExecutionContext` of the request. */
  readonly args: Args;
}

/**
 * Makes the result of a call that timed out. It may declare the types of the arguments: the compiler checks those of
 * the method against them.
 */
export type TimeoutFallback<Result, Args extends readonly unknown[]> = {
  fallback(context: LockTimeoutContext<Args>): Result;
}['fallback'];

/** The result of a call that timed out; `never` where it throws, or where the type is not known before the call. */
type FallbackResult<Word, Result> =
  ('throw' extends Word ? never : undefined) | (unknown extends Result ? never : Nothing<Awaited<Result>>);

/** A function that returns nothing gives the caller `undefined`. */
type Nothing<Result> = Result extends void ? undefined : Result;

/**
 * Accepts a method whose declared result allows for the fallback, and whose arguments fit the fallback function; for
 * any other, a type whose text is the compiler's error.
 */
export type AllowsFallback<Word, Result, Asked extends readonly unknown[], M extends (...args: never[]) => unknown> =
  M extends (...args: infer Args) => Promise<infer Own>
    ? [FallbackResult<Word, Result>] extends [Own]
      ? [Args] extends [Asked] ? unknown : { 'onTimeout asks for other arguments than the method has': Args }
      : { 'onTimeout returns what the method does not': FallbackResult<Word, Result> }
    : unknown; // prettier-ignore
