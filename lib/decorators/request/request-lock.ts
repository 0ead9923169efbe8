import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import {
  type CallHandler,
  type ExecutionContext,
  Inject,
  Injectable,
  type NestInterceptor,
  UseInterceptors,
} from '@nestjs/common';
import { Observable, of } from 'rxjs';
import type { LockKey } from '../../core/request/lock-key.js';
import { isThenable, settled } from '../../core/settled.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { LockTimeoutError } from '../../errors/lock-timeout.error.js';
import { clientGone, insideRequest, rawResponse, attachToRequest } from '../../http/http-request.js';
import { isOver, onceEnded } from '../../http/response-end.js';
import { lostError } from '../../service/lock.calls.js';
import type { LockService } from '../../service/lock.service.js';
import { lockServiceToken } from '../../service/lock.tokens.js';
import { readWhileHeld } from '../stream/held-stream.js';
import { endedBy, resolvedKey, withCurrentLock } from '../call/lock-call.js';
import { RequestHold } from './request-hold.js';
import { isObservable } from '../stream/stream-kind.js';
import { untilUnsubscribed } from '../stream/until-unsubscribed.js';
import type { ResolvedDecoratorOptions } from '../with-lock.options.js';
import type { Around } from '../method/wrap-method.js';

interface RequestSite {
  /** `OrdersController.confirm` */
  readonly site: string;
  readonly options: ResolvedDecoratorOptions;
  readonly keyOf: (context: ExecutionContext) => LockKey;
  readonly lockParameters: readonly number[];
}

/** The lock of the request that the running async context answers. */
const holds = new AsyncLocalStorage<RequestHold>();

const interceptors = new WeakSet<object>();

/** Whether it is the interceptor of a handler with `scope: 'request'`. */
export const isRequestLock = (type: unknown): boolean => typeof type === 'function' && interceptors.has(type);

/**
 * Makes the two parts of a handler's lock with `scope: 'request'`: an interceptor that takes it, and what stands around the
 * handler, which does not run where the interceptor has not.
 */
export function bindRequestLock(request: RequestSite): { around: Around; bind: MethodDecorator } {
  const token = {};
  const { onLost = 'throw' } = request.options.lockOptions;
  const around: Around = (body, self, args) => {
    const hold = holds.getStore()?.of(token);
    if (!hold) return Promise.reject(attachToRequest(notARequest(request.site)));
    let leave: () => void;
    try {
      leave = hold.enter();
    } catch (error) {
      // As a promise, as the handler would have failed.
      return Promise.reject(error);
    }
    try {
      const made: unknown = Reflect.apply(body, self, withCurrentLock(args, request.lockParameters, hold.lock));
      const ready = (value: unknown): unknown =>
        onLost === 'throw' && isObservable(value) ? readWhileHeld(value, hold) : value;
      // Nest would ask it again.
      const result = isThenable(made) ? Promise.resolve(settled(made)).then(ready) : ready(made);
      void Promise.resolve(result).then(leave, leave);
      return result;
    } catch (error) {
      leave();
      throw error;
    }
  };
  return { around, bind: UseInterceptors(requestLockInterceptor(request, token)) };
}

function requestLockInterceptor({ site, options, keyOf }: RequestSite, token: object): new () => NestInterceptor {
  const { onTimeout, lockOptions, module } = options;
  const { onLost = 'throw' } = lockOptions;
  /** By the response: an interceptor around this one may try the handler again. While the first try still works, the second waits for the lock. */
  const taken = new WeakMap<ServerResponse, RequestHold>();

  const answerOf = (hold: RequestHold, next: CallHandler): Observable<unknown> =>
    answer(
      hold,
      holds.run(hold, () => next.handle()),
      onLost,
    );

  @Injectable()
  class RequestLockInterceptor implements NestInterceptor {
    @Inject(lockServiceToken(module)) readonly locks!: LockService;

    intercept(context: ExecutionContext, next: CallHandler): Promise<Observable<unknown>> {
      const response = rawResponse(context);
      if (!response) return Promise.reject(notARequest(site));
      return insideRequest(context, () => {
        const hold = taken.get(response);
        return hold?.isIdle
          ? Promise.resolve(this.locks.goOn(hold, () => answerOf(hold, next)))
          : this.#inLock(context, response, next);
      });
    }

    #inLock(context: ExecutionContext, response: ServerResponse, next: CallHandler): Promise<Observable<unknown>> {
      const { exceptionFactory } = this.locks;
      const key = resolvedKey(keyOf, context, exceptionFactory);
      const over = new AbortController();
      // Where an interceptor has answered meanwhile, nobody waits for the handler. An answer that was given before this handler is no reason.
      if (!isOver(response)) onceEnded(response, () => over.abort(clientGone()));
      return new Promise((resolve, reject) => {
        let began = false;
        this.locks
          .withLock(
            key,
            (lock) => {
              over.signal.throwIfAborted();
              began = true;
              const hold = new RequestHold({ site: token, lock, response, outer: holds.getStore(), exceptionFactory });
              taken.set(response, hold);
              resolve(answerOf(hold, next));
              return hold.ended;
            },
            endedBy(over.signal, lockOptions),
          )
          .catch(async (error: unknown) => {
            if (began || onTimeout === 'throw' || !(error instanceof LockTimeoutError)) throw error;
            resolve(of(typeof onTimeout === 'function' ? await onTimeout({ error, args: [context] }) : undefined));
          })
          .catch(reject);
      });
    }
  }
  interceptors.add(RequestLockInterceptor);
  return RequestLockInterceptor;
}

/** What the handler answers, unless the lock is lost before. */
function answer(hold: RequestHold, source: Observable<unknown>, onLost: 'throw' | 'ignore'): Observable<unknown> {
  return new Observable((subscriber) => {
    const leave = hold.enter();
    const answers = untilUnsubscribed(source, subscriber);
    subscriber.add(leave);
    const unlessLost = (tell: () => void, cause?: unknown): void => {
      if (subscriber.closed) return;
      // Asked of the clock, so that a loss that no timer has told of yet is known. A lock that the handler has given back is not lost.
      const lost = onLost === 'throw' && !hold.lock.isHeld ? hold.lock.lost : undefined;
      if (!lost) tell();
      else subscriber.error(lostError(lost, hold.exceptionFactory, cause));
    };
    answers.subscribe({
      next: (value) => unlessLost(() => subscriber.next(value)),
      error: (error: unknown) => unlessLost(() => subscriber.error(error), error),
      complete: () => unlessLost(() => subscriber.complete()),
    });
  });
}

function notARequest(site: string): LockOptionsError {
  return new LockOptionsError(
    `${site}() has a lock with scope: 'request', but was not called as the handler of an HTTP request, so it did not run. ` +
      `Leave out the scope to hold the lock for each call.`,
  );
}
