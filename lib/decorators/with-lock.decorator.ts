import 'reflect-metadata';
import { type ExecutionContext, Inject } from '@nestjs/common';
import type { Observable } from 'rxjs';
import type { LockKey } from '../core/lock-key.js';
import { lockServiceSlot, lockServiceToken } from '../lock.tokens.js';
import { checkedMethod, returnKind } from './checked-method.js';
import { currentLockParameters } from './current-lock.decorator.js';
import { keyResolver, requestKeyResolver } from './key-resolver.js';
import { lazyIterator, lazyObservable } from './lazy-stream.js';
import { lockCall } from './lock-call.js';
import { noteLockedMethod } from './locked-methods.js';
import { bindRequestLock } from './request-lock.js';
import type { Fills } from './template-types.js';
import { TransactionWatch } from './transaction-order.js';
import { checkedOptions, type RequestLockOptions, type WithLockDecoratorOptions } from './with-lock.options.js';
import { wrapMethod, type Around } from './wrap-method.js';

type CallOptions = WithLockDecoratorOptions & { readonly scope?: 'call' };

/** Whose work has an end that can be waited for. */
type AsyncMethod = (...args: never[]) => Promise<unknown> | Observable<unknown> | AsyncIterator<unknown>;

/** Holds for a method whose parameters begin with `Args`. */
type Takes<Args extends unknown[], M extends AsyncMethod> = Parameters<M> extends [...Args, ...unknown[]]
  ? unknown
  : { 'the key function asks for other parameters than the method has': Parameters<M> };

/**
 * Decorates a method that returns a promise, an Observable or an async iterator, whose parameters begin with `Args`, and can fill what
 * `Key` names by position.
 */
export type WithLockDecorator<Args extends unknown[], Key = unknown> = <M extends AsyncMethod>(
  prototype: object,
  name: string | symbol,
  descriptor: TypedPropertyDescriptor<M> & Takes<Args, M> & Fills<Key, Parameters<M>>,
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
 * @throws LockOptionsError when the class is defined, for a bad template or option
 * @throws LockTimeoutError, LockUnavailableError, LockLostError, LockKeyError, LockNotWiredError from the decorated method
 */
export function WithLock(key: string | readonly string[] | ((context: ExecutionContext) => LockKey), options: RequestLockOptions): MethodDecorator;
export function WithLock<const Key extends string | readonly string[]>(key: Key, options?: CallOptions): WithLockDecorator<[], Key>;
export function WithLock<Args extends unknown[]>(key: (...args: Args) => LockKey, options?: CallOptions): WithLockDecorator<Args>;
export function WithLock(key: unknown, options: WithLockDecoratorOptions = {}): WithLockDecorator<[]> {
  const checked = checkedOptions(options);
  const { module, scope } = checked;
  return (prototype, name, descriptor) => {
    const method = checkedMethod(prototype, name, descriptor);
    const site = `${prototype.constructor.name}.${String(name)}`;
    const kind = scope === 'call' ? returnKind(prototype, name, method) : 'promise';
    const watch = new TransactionWatch();
    const lockParameters = currentLockParameters(prototype, name);
    const wrap = (around: Around) => (descriptor.value = wrapMethod(method, around, watch) as unknown as typeof descriptor.value);
    if (scope === 'request') {
      const { around, bind } = bindRequestLock({ site, options: checked, keyOf: requestKeyResolver(key, site), lockParameters });
      wrap(around);
      bind(prototype, name, descriptor);
    } else {
      const call = lockCall({ site, options: checked, keyOf: keyResolver(key, prototype, name, site), lockParameters });
      if (kind === 'observable') wrap((body, self, args) => lazyObservable((unsubscribed) => call(body, self, args, unsubscribed)));
      else if (kind === 'iterator') wrap((body, self, args) => lazyIterator(() => call(body, self, args)));
      else wrap(call);
    }
    Inject(lockServiceToken(module))(prototype, lockServiceSlot(module));
    noteLockedMethod(prototype, { owner: prototype, name, module, key, scope, transaction: () => watch.seen });
  };
}
