import 'reflect-metadata';
import { type ExecutionContext, Inject } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { LockKey } from '../core/request/lock-key.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { Mistakes } from '../errors/mistakes.js';
import { DEFAULT_MODULE, lockServiceSlot, lockServiceToken } from '../service/lock.tokens.js';
import { checkedMethod, returnKind } from './method/checked-method.js';
import { methodName } from './method/method-name.js';
import { noteLockedMethod } from './method/locked-methods.js';
import { wrapForCall, refusal, wrapForRequest } from './method-wrapper.js';
import { defineSlot } from './instance/service-slot.js';
import { isStandard } from './method/standard-decorator.js';
import type { AllowsFallback } from './timeout-types.js';
import type { Fills } from './key/template-types.js';
import { TransactionWatch } from './method/transaction-order.js';
import {
  resolveDecoratorOptions,
  type RequestLockOptions,
  type WithLockDecoratorOptions,
} from './with-lock.options.js';
import { wrapMethod } from './method/wrap-method.js';

type CallOptions<Word, Result, Asked extends readonly unknown[]> = WithLockDecoratorOptions<Word, Result, Asked> & {
  readonly scope?: 'call';
};

/** Whose work has an end that can be waited for. */
type AsyncMethod = (...args: never[]) => Promise<unknown> | Observable<unknown> | AsyncIterator<unknown>;

/** Holds for a method whose parameters begin with `Args`. */
type Takes<Args extends unknown[], M extends AsyncMethod> =
  Parameters<M> extends [...Args, ...unknown[]]
    ? unknown
    : { 'the key function asks for other parameters than the method has': Parameters<M> };

/**
 * Decorates a method that returns a promise, an Observable or an async iterator, whose parameters begin with `Args`, and can fill what
 * `Key` names by position, and whose result allows for what is answered to a time-out: `undefined` with the `Word` `'skip'`, or the `Result` of a function that asks for
 * arguments `Asked`.
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

/**
 * Runs the method while holding a lock on the key. If the lock can't be had, the method does not run.
 *
 * The key is a template filled from the arguments: by name (`account:<userId>`), by path (`order:<dto.items.0.sku>`),
 * by position (`account:<0>`), several of them, or a function of the arguments. The lock is held until the promise that the method
 * returns is settled, or the Observable or async iterator has ended.
 *
 * With `scope: 'request'`, on an HTTP handler, the key is made from `<params.id>`, `<query.x>`, `<body.x>` and `<headers.x>` or by a
 * function of the `ExecutionContext`, and the lock is held until the response has been sent.
 *
 * A bad template or option is told when the app starts, in one list with all others, and its method refuses to be called.
 *
 * @throws LockOptionsError when the class is defined, where it does not stand on a method of an instance
 * @throws LockTimeoutError, LockUnavailableError, LockLostError, LockKeyError, LockOptionsError, LockNotWiredError from the decorated method
 */
export function WithLock(
  key: string | readonly string[] | ((context: ExecutionContext) => LockKey),
  options: RequestLockOptions,
): MethodDecorator;
export function WithLock<
  const Key extends string | readonly string[],
  Word extends 'throw' | 'skip' = 'throw',
  Result = never,
  Asked extends readonly unknown[] = readonly unknown[],
>(key: Key, options?: CallOptions<Word, Result, Asked>): WithLockDecorator<[], Key, Word, Result, Asked>;
export function WithLock<
  Args extends unknown[],
  Word extends 'throw' | 'skip' = 'throw',
  Result = never,
  Asked extends readonly unknown[] = readonly unknown[],
>(
  key: (...args: Args) => LockKey,
  options?: CallOptions<Word, Result, Asked>,
): WithLockDecorator<Args, unknown, Word, Result, Asked>;
export function WithLock(key: string | readonly string[], options: WithLockDecoratorOptions): MethodDecorator;
export function WithLock(key: unknown, options: WithLockDecoratorOptions = {}): WithLockDecorator<[]> {
  refuseBare(key, options);
  return (prototype, name, descriptor) => {
    const method = checkedMethod(prototype, name, descriptor);
    const scope = options?.scope === 'request' ? 'request' : 'call';
    const watch = new TransactionWatch();

    const mistakes = new Mistakes();
    const checked = mistakes.try(() => resolveDecoratorOptions(methodName(prototype, name), options));
    const kind = mistakes.try(() => (scope === 'call' ? returnKind(prototype, name, method) : 'promise')) ?? 'promise';
    const guard = mistakes.try(() =>
      scope === 'call' ? wrapForCall(key, prototype, name, kind) : wrapForRequest(key, prototype, name),
    );
    const { error } = mistakes;

    const { around, bind } = checked && guard && !error ? guard(checked) : refusal(error!, kind);
    descriptor.value = wrapMethod(method, around, watch) as unknown as typeof descriptor.value;
    bind?.(prototype, name, descriptor);
    if (checked) {
      const slot = lockServiceSlot(checked.module);
      Inject(lockServiceToken(checked.module))(prototype, slot);
      defineSlot(prototype, slot);
    }
    const module = checked?.module ?? DEFAULT_MODULE;
    noteLockedMethod(prototype, {
      owner: prototype,
      name,
      module,
      key,
      scope,
      kind,
      mistakes: error?.message,
      transaction: () => watch.seen,
    });
  };
}

/** Without brackets it gets what it would decorate in the place of a key. */
function refuseBare(key: unknown, options: unknown): void {
  const isTarget = typeof key === 'object' && key !== null && !Array.isArray(key);
  if ((isTarget && ['string', 'symbol'].includes(typeof options)) || isStandard(options))
    throw new LockOptionsError('@WithLock needs a key: write @WithLock("account:<id>").');
}
