import 'reflect-metadata';
import { type ExecutionContext, Inject } from '@nestjs/common';
import type { LockKey } from '../core/request/lock-key.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { Mistakes } from '../errors/mistakes.js';
import { currentLockParameters } from './current-lock.decorator.js';
import { DEFAULT_MODULE, lockServiceSlot, lockServiceToken } from '../service/lock.tokens.js';
import { checkedMethod, type Method, returnKind, type ReturnKind } from './method/checked-method.js';
import { methodName } from './method/method-name.js';
import { noteLockedMethod } from './method/locked-methods.js';
import { type MethodWrapper, wrapForCall, wrapForRequest } from './method-wrapper.js';
import { refuseCalls } from './call/around-call.js';
import { defineSlot } from './instance/service-slot.js';
import { isStandard } from './method/standard-decorator.js';
import { TransactionWatch } from './method/transaction-order.js';
import {
  resolveDecoratorOptions,
  type RequestLockOptions,
  type WithLockDecoratorOptions,
} from './options/with-lock.options.js';
import type { CallOptions, WithLockDecorator } from './options/with-lock.types.js';
import { refuseAboveCaller } from './request-scope/handler-callers.js';
import { requestLockOf } from './request-scope/request-lock.interceptor.js';
import { wrapMethod } from './method/wrap-method.js';

/**
 * Runs the method while holding a lock on the key. If the lock can't be had, the method does not run.
 *
 * The key is a template filled from the arguments: by name (`account:<userId>`), by path (`order:<dto.items.0.sku>`) or
 * by position (`account:<0>`); several templates; or a function of the arguments. The lock is held until the promise
 * that the method returns is settled, or until the Observable or async iterator that it returns has ended.
 *
 * With `scope: 'request'`, on an HTTP handler, the key is made from `<params.id>`, `<query.x>`, `<body.x>` and
 * `<headers.x>` or by a function of the `ExecutionContext`, and the lock is held until the response has been sent.
 *
 * The app refuses to start with a bad template or option. One error lists all of them, and each call of such a method
 * is refused.
 *
 * @throws LockOptionsError when the class is defined, if the decorator does not stand on an instance method
 * @throws LockTimeoutError, LockUnavailableError, LockLostError, LockKeyError, LockOptionsError, LockNotWiredError from
 * the decorated method
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
    mistakes.try(() => refuseAboveCaller(prototype, name, method, scope));
    const resolved = mistakes.try(() => resolveDecoratorOptions(methodName(prototype, name), key, options));
    const kind = mistakes.try(() => (scope === 'call' ? callKind(prototype, name, method) : 'promise')) ?? 'promise';
    const wrapper = mistakes.try(() =>
      scope === 'call' ? wrapForCall(key, prototype, name, kind) : wrapForRequest(key, prototype, name),
    );
    const { error } = mistakes;

    const { around, bind }: MethodWrapper =
      resolved && wrapper && !error ? wrapper(resolved) : { around: refuseCalls(error!, kind) };
    const filled = currentLockParameters(prototype, name);
    descriptor.value = wrapMethod(method, around, watch, filled) as unknown as typeof descriptor.value;
    bind?.(prototype, name, descriptor);
    // Compilers define it when all decorators have run; but one above may read it from the class, or there is none.
    Object.defineProperty(prototype, name, { configurable: true, writable: true, ...descriptor });
    watch.follow(descriptor);
    if (resolved) {
      const slot = lockServiceSlot(resolved.module);
      Inject(lockServiceToken(resolved.module))(prototype, slot);
      defineSlot(prototype, slot);
    }
    const module = resolved?.module ?? DEFAULT_MODULE;
    noteLockedMethod(prototype, {
      owner: prototype,
      name,
      module,
      key,
      scope,
      kind,
      skips: resolved?.onTimeout === 'skip',
      mistakes: error?.message,
      transaction: () => watch.seen,
    });
  };
}

/** Tells when a method with a lock of its call runs: at once, or when somebody reads what it returns. */
function callKind(prototype: object, name: string | symbol, method: Method): ReturnKind {
  const kind = returnKind(prototype, name, method);
  // A lock of the request below must be called by Nest itself, and not by whoever reads the stream.
  return kind !== 'unknown' && requestLockOf(method) ? 'promise' : kind;
}

/** Refuses `@WithLock` without brackets, which gets the decorated thing instead of a key. */
function refuseBare(key: unknown, options: unknown): void {
  const isTarget = typeof key === 'object' && key !== null && !Array.isArray(key);
  if ((isTarget && ['string', 'symbol'].includes(typeof options)) || isStandard(options))
    throw new LockOptionsError('@WithLock needs a key: write @WithLock("account:<id>").');
}
