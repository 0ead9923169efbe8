import type { Observable } from 'rxjs';
import type { Fills } from '../key/template-types.js';
import type { AllowsFallback } from './timeout-types.js';
import type { WithLockDecoratorOptions } from './with-lock.options.js';

/** The options of `@WithLock` for a lock that is held for each call. */
export type CallOptions<Word, Result, Asked extends readonly unknown[]> = WithLockDecoratorOptions<
  Word,
  Result,
  Asked
> & {
  readonly scope?: 'call' | undefined;
};

/** A method whose caller can see when its work ends. */
type AsyncMethod = (...args: never[]) => Promise<unknown> | Observable<unknown> | AsyncIterator<unknown>;

/** Accepts a method whose parameters begin with `Args`; for any other, a type whose text is the compiler's error. */
type Takes<Args extends unknown[], M extends AsyncMethod> =
  Parameters<M> extends [...Args, ...unknown[]]
    ? unknown
    : { 'the key function asks for other parameters than the method has': Parameters<M> };

/**
 * Decorates a method that returns a promise, an Observable or an async iterator. Its parameters must begin with `Args`
 * and fill the positions that `Key` names. Its result must allow for what `onTimeout` returns: `undefined` if `Word` is
 * `'skip'`, or the `Result` of a function whose arguments are `Asked`.
 */
export type WithLockDecorator<
  Args extends unknown[],
  Key = unknown,
  Word = 'throw',
  Result = never,
  Asked extends readonly unknown[] = readonly unknown[],
> = <M extends AsyncMethod>(
  prototype: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M> &
    Takes<Args, M> &
    Fills<Key, Parameters<M>> &
    AllowsFallback<Word, Result, Asked, M>,
) => void;
