import { UseInterceptors } from '@nestjs/common';
import { isThenable, startIfLazy } from '../../core/lazy-promise.js';
import { attachToRequest } from '../../http/http-request.js';
import { withCurrentLock } from '../call/call-parts.js';
import type { Around } from '../method/wrap-method.js';
import { isAsyncIterator, isObservable } from '../stream/stream-kind.js';
import { currentHold } from './request-hold.js';
import { RequestIterator } from './request-iterator.js';
import { notARequest, requestLockInterceptor, type LockedHandler } from './request-lock.interceptor.js';
import { readableWhileHeld } from './request-stream.js';

/**
 * Makes the two parts of a handler's lock with `scope: 'request'`: an interceptor that takes the lock, and a function
 * around the handler that refuses to run it without the interceptor.
 */
export function bindRequestLock(handler: LockedHandler): { around: Around; bind: MethodDecorator } {
  const id = {};
  const { onLost = 'throw' } = handler.options.lockOptions;
  const around: Around = (body, self, args) => {
    const hold = currentHold()?.ofHandler(id);
    if (!hold) return Promise.reject(attachToRequest(notARequest(handler.name)));
    let leave: () => void;
    try {
      leave = hold.enter();
    } catch (error) {
      // Returned as a promise, as the handler itself would have failed.
      return Promise.reject(error);
    }
    try {
      const made: unknown = Reflect.apply(body, self, withCurrentLock(args, handler.lockParameters, hold.lock));
      const readable = (value: unknown): unknown => {
        if (isObservable(value)) return onLost === 'throw' ? readableWhileHeld(value, hold) : value;
        return isAsyncIterator(value) ? new RequestIterator(value, hold, onLost) : value;
      };
      // Settled here, because Nest would call `then` a second time.
      const result = isThenable(made) ? Promise.resolve(startIfLazy(made)).then(readable) : readable(made);
      void Promise.resolve(result).then(leave, leave);
      return result;
    } catch (error) {
      leave();
      throw error;
    }
  };
  return { around, bind: UseInterceptors(requestLockInterceptor(handler, id)) };
}
