import type { Lock } from '../../core/lock/lock.js';
import type { LockKey } from '../../core/request/lock-key.js';
import type { WithLockOptions } from '../../core/request/lock-options.js';
import { LockNotWiredError } from '../../errors/lock-not-wired.error.js';
import { LockTimeoutError } from '../../errors/lock-timeout.error.js';
import type { LockExceptionFactory } from '../../http/exception-factory.js';
import { attachToRequest } from '../../http/http-request.js';
import type { LockService } from '../../service/lock.service.js';
import { lockServiceSlot } from '../../service/lock.tokens.js';
import { notAPromise, type Method } from '../method/checked-method.js';
import { holdUntilEnd } from '../stream/held-stream.js';
import { openServiceOf } from './shared-object.js';
import { isForeignObservable } from '../stream/stream-kind.js';
import { warnIfUncovered } from '../stream/uncovered-stream.js';
import type { ResolvedDecoratorOptions } from '../with-lock.options.js';

/** What a call of a locked method needs to know of it. */
export interface LockedSite {
  /** `AccountService.withdraw` */
  readonly site: string;
  readonly options: ResolvedDecoratorOptions;
  readonly keyOf: (args: unknown[]) => LockKey;
  /** The parameters that `@CurrentLock()` stands on. */
  readonly lockParameters: readonly number[];
}

/** Calls a body with its lock held. `unsubscribed` ends the wait, and the body does not begin. */
export type LockCall = (body: Method, self: object, args: unknown[], unsubscribed?: AbortSignal) => Promise<unknown>;

export function lockCall(site: LockedSite): LockCall {
  return site.options.onTimeout === 'throw' ? callOrThrow(site) : callWithFallback(site);
}

/** @throws LockNotWiredError */
export function locksOf(self: object, site: string, module: string): LockService {
  const slot = lockServiceSlot(module);
  const locks = (self as Partial<Record<symbol, LockService>> | undefined)?.[slot];
  if (!locks) throw attachToRequest(new LockNotWiredError(site, module));
  return locks.isEnding ? (openServiceOf(self, slot) ?? locks) : locks;
}

function callOrThrow({ site, options, keyOf, lockParameters }: LockedSite): LockCall {
  const { module, lockOptions } = options;
  const onLost = lockOptions.onLost ?? 'throw';
  // Not an async function: a lock costs little enough that one more promise shows.
  return (body, self, args, unsubscribed) => {
    try {
      const locks = locksOf(self, site, module);
      const { exceptionFactory } = locks;
      const work = (lock: Lock): unknown => {
        unsubscribed?.throwIfAborted();
        const result = Reflect.apply(body, self, withCurrentLock(args, lockParameters, lock));
        return Promise.resolve(result).then((value) =>
          checkedResult(holdUntilEnd(value, { lock, onLost, exceptionFactory }), site),
        );
      };
      return locks.withLock(resolvedKey(keyOf, args, exceptionFactory), work, endedBy(unsubscribed, lockOptions));
    } catch (error) {
      return Promise.reject(error);
    }
  };
}

function callWithFallback(locked: LockedSite): LockCall {
  const call = callOrThrow(locked);
  const { onTimeout } = locked.options;
  return async (body, self, args, unsubscribed) => {
    let began = false;
    const noted: Method = (...received) => {
      began = true;
      return Reflect.apply(body, self, received);
    };
    try {
      return await call(noted, self, args, unsubscribed);
    } catch (error) {
      // A time-out from inside the method is the method's own.
      if (began || !(error instanceof LockTimeoutError)) throw error;
      return typeof onTimeout === 'function' ? onTimeout({ error, args }) : undefined;
    }
  };
}

/** The options of a lock whose wait that signal ends, too. */
export function endedBy(signal: AbortSignal | undefined, options: WithLockOptions): WithLockOptions {
  if (!signal) return options;
  return { ...options, signal: options.signal ? AbortSignal.any([options.signal, signal]) : signal };
}

/** Makes the key of a call, or hands the error to the HTTP request of the call. */
export function resolvedKey<A>(
  keyOf: (args: A) => LockKey,
  args: A,
  factory: LockExceptionFactory | undefined,
): LockKey {
  try {
    return keyOf(args);
  } catch (error) {
    throw attachToRequest(error, factory);
  }
}

/** Looks for what would go on without the lock: an Observable of another library is refused, a stream may be read by then. */
function checkedResult(result: unknown, site: string): unknown {
  if (isForeignObservable(result)) throw notAPromise(site);
  warnIfUncovered(result, site);
  return result;
}

export function withCurrentLock(args: unknown[], indexes: readonly number[], lock: Lock): unknown[] {
  if (indexes.length === 0) return args;
  const copy = [...args];
  for (const index of indexes) copy[index] = lock;
  return copy;
}
