import { types } from 'node:util';
import { rejectLater } from '../../clock/next-turn.js';
import { noteNoWork } from '../../core/lock/give-back.js';
import type { Lock } from '../../core/lock/lock.js';
import type { LockKey } from '../../core/request/lock-key.js';
import type { WithLockOptions } from '../../core/request/lock-options.js';
import { LockTimeoutError } from '../../errors/lock-timeout.error.js';
import { type CallStreams, hasCallEnded, withStreams } from '../../http/grpc-call.js';
import type { Method } from '../method/checked-method.js';
import type { ResolvedDecoratorOptions } from '../options/with-lock.options.js';
import { holdUntilEnd } from '../stream/hold-until-end.js';
import { warnIfUncovered } from '../stream/uncovered-result.js';
import { endedBy, keyOrAttachedError, withCurrentLock } from './call-parts.js';
import { serviceOf } from './service-of.js';

/** A method with `@WithLock`, as its calls need to know it. */
export interface CalledMethod {
  /** `AccountService.withdraw` */
  readonly name: string;
  readonly options: ResolvedDecoratorOptions;
  readonly keyOf: (args: unknown[]) => LockKey;
  /** The parameters that `@CurrentLock()` stands on. */
  readonly lockParameters: readonly number[];
}

/** Calls a body while holding its lock. `unsubscribed` ends the wait; the body does not begin then. */
export type LockCall = (body: Method, self: object, args: unknown[], unsubscribed?: AbortSignal) => Promise<unknown>;

/** The same, with the streams among its arguments. */
type StreamsCall = (...call: [...Parameters<LockCall>, streams?: CallStreams]) => Promise<unknown>;

export function lockCall(method: CalledMethod): LockCall {
  return method.options.onTimeout === 'throw' ? callOrThrow(method) : callWithFallback(method);
}

function callOrThrow({ name, options, keyOf, lockParameters }: CalledMethod): StreamsCall {
  const { module, lockOptions } = options;
  const onLost = lockOptions.onLost ?? 'throw';
  // Not an async function: a lock costs so little that one more promise shows.
  return (body, self, args, unsubscribed, given = withStreams(args)) => {
    let streams = given;
    try {
      const locks = serviceOf(self, name, module);
      const { requests } = locks;
      const key = keyOrAttachedError(keyOf, args, requests);
      const work = (lock: Lock): unknown => {
        try {
          streams?.assertSent();
        } catch (error) {
          noteNoWork(lock);
          throw error;
        }
        const result = Reflect.apply(body, self, withCurrentLock(streams?.args ?? args, lockParameters, lock));
        // A stream keeps in memory what it has not read: only the method may keep it from here on.
        streams = undefined;
        return Promise.resolve(result).then((value) => {
          warnIfUncovered(value, name, self);
          return holdUntilEnd(value, { lock, onLost, requests, hasCallEnded: hasCallEnded(args) });
        });
      };
      const withLock = (options: WithLockOptions) => promiseOf(locks.withLock(key, work, options));
      return unsubscribed ? endedBy(unsubscribed, lockOptions, withLock) : withLock(lockOptions);
    } catch (error) {
      return rejectLater(error);
    }
  };
}

/** A mock of a `LockService` may return anything. */
const promiseOf = (result: unknown): Promise<unknown> => (types.isPromise(result) ? result : Promise.resolve(result));

function callWithFallback(method: CalledMethod): LockCall {
  const call = callOrThrow(method);
  const { onTimeout } = method.options;
  return async (body, self, args, unsubscribed) => {
    let began = false;
    let streams = withStreams(args);
    const noted: Method = (...received) => {
      began = true;
      streams = undefined;
      return Reflect.apply(body, self, received);
    };
    try {
      return await call(noted, self, args, unsubscribed, streams);
    } catch (error) {
      // A time-out from inside the method is the method's own.
      if (began || !(error instanceof LockTimeoutError)) throw error;
      streams?.assertSent();
      return typeof onTimeout === 'function' ? onTimeout({ error, args: streams?.args ?? args }) : undefined;
    }
  };
}
