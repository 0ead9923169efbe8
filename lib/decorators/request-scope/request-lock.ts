import { UseInterceptors } from '@nestjs/common';
import { rejectLater } from '../../clock/next-turn.js';
import { isThenable, startIfLazy } from '../../core/lazy-promise.js';
import { attachToRequest } from '../../http/http-request.js';
import { withCurrentLock } from '../call/call-parts.js';
import type { Around } from '../method/wrap-method.js';
import { isAsyncIterator, isObservable } from '../stream/stream-kind.js';
import type { HandlerCall } from './handler-call.js';
import { Turn } from './handler-turn.js';
import { RequestIterator } from './request-iterator.js';
import { notARequest, requestLockInterceptor, type LockedHandler } from './request-lock.interceptor.js';
import { readableWhileHeld } from './request-stream.js';
import { currentTry } from './request-try.js';

/**
 * Makes the two parts of a handler's lock with `scope: 'request'`: an interceptor that takes the lock, and a function
 * around the handler that refuses to run it without the interceptor.
 */
export function bindRequestLock(handler: LockedHandler): { around: Around; bind: MethodDecorator } {
  const id = {};
  const { onLost = 'throw' } = handler.options.lockOptions;
  const around: Around = (body, self, args) => {
    const begun = currentTry()?.ofHandler(id);
    if (!begun) return rejectLater(attachToRequest(notARequest(handler.name)));
    const call: HandlerCall = { hold: begun.hold, onLost };
    const readable = (value: unknown): unknown => {
      if (isObservable(value)) return readableWhileHeld(value, call);
      return isAsyncIterator(value) ? new RequestIterator(value, call) : value;
    };
    const run = (turn: Turn): unknown => {
      let leave: () => void;
      try {
        leave = begun.enterHandler();
      } catch (error) {
        turn.end();
        // Returned as a promise, as the handler itself would have failed.
        return begun.refuse(error);
      }
      const end = (): void => {
        turn.end();
        leave();
      };
      try {
        const received = withCurrentLock(args, handler.lockParameters, call.hold.lock);
        // A lazy result is started here, because Nest would call `then` a second time.
        const made = turn.run(() => startIfLazy(Reflect.apply(body, self, received)));
        const result = isThenable(made) ? Promise.resolve(made).then(readable) : readable(made);
        void Promise.resolve(result).then(end, end);
        return result;
      } catch (error) {
        end();
        throw error;
      }
    };
    try {
      const turn = call.hold.takeTurn(call);
      return turn instanceof Turn ? run(turn) : turn.then(run);
    } catch (error) {
      return begun.refuse(error);
    }
  };
  return { around, bind: UseInterceptors(requestLockInterceptor(handler, id)) };
}
