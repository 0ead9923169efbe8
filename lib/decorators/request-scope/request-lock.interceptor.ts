import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { type CallHandler, type ExecutionContext, Inject, Injectable, type NestInterceptor } from '@nestjs/common';
import { Observable, of, type Subscription, throwError } from 'rxjs';
import type { Lock } from '../../core/lock/lock.js';
import type { LockKey } from '../../core/request/lock-key.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { LockTimeoutError } from '../../errors/lock-timeout.error.js';
import { clientGone, insideRequest, isElsewhere, rawResponse } from '../../http/http-request.js';
import { isEndedByApp, isOver, onceEnded } from '../../http/response-end.js';
import type { LockService } from '../../service/lock.service.js';
import { lockServiceSlot, lockServiceToken } from '../../service/lock.tokens.js';
import { endedBy, keyOrAttachedError } from '../call/call-parts.js';
import type { ResolvedDecoratorOptions } from '../options/with-lock.options.js';
import { isObservable } from '../stream/stream-kind.js';
import { bindInnermost } from './innermost.interceptor.js';
import { interceptorsOf, methodsWith } from './lock-routes.js';
import { RequestHold } from './request-hold.js';
import { RequestHolds } from './request-holds.js';
import { responseUnlessLost } from './request-stream.js';
import { RequestTry, tryOf } from './request-try.js';
import { closeUnsent } from './unsent-body.js';

/** A handler with `scope: 'request'`, as its requests need to know it. */
export interface LockedHandler {
  /** `OrdersController.confirm` */
  readonly name: string;
  /** The prototype of its class. */
  readonly prototype: object;
  readonly options: ResolvedDecoratorOptions;
  readonly keyOf: (context: ExecutionContext) => LockKey;
  /** The parameters that `@CurrentLock()` stands on. */
  readonly lockParameters: readonly number[];
}

/** A try of a handler that needs a lock of its own. */
interface TryParts {
  readonly key: LockKey;
  readonly context: ExecutionContext;
  readonly response: ServerResponse;
  /** Unsubscribes when nobody waits for the try any more, such as an interceptor with `timeout()`. */
  readonly reader: Pick<Subscription, 'add' | 'closed'>;
  /** A hold of the same request and key, in which another try works. */
  readonly own: RequestHold | undefined;
}

/** A try need not wait any more: it can go on in the lock of its request. Listeners of events may get it. */
class Again extends Error {
  constructor() {
    super('Another try of the same request has ended, so this one goes on in its lock.');
  }
}

const interceptors = new WeakSet<object>();

/** Returns the interceptor that takes the lock of a handler with `scope: 'request'`. */
export function requestLockOf(method: object): unknown {
  return interceptorsOf(method).find((type) => typeof type === 'function' && interceptors.has(type));
}

/**
 * Makes the interceptor that takes the lock of one handler, and holds it until the request is over.
 *
 * @param id identifies the handler in its holds
 */
export function requestLockInterceptor(
  { name, prototype, options, keyOf }: LockedHandler,
  id: object,
): new () => NestInterceptor {
  const { onTimeout, lockOptions, module } = options;
  const { onLost = 'throw' } = lockOptions;
  const slot = lockServiceSlot(module);
  /** An interceptor around this one may try the handler again. While the first try still works, the second waits. */
  const holds = new RequestHolds();

  @Injectable()
  class RequestLockInterceptor implements NestInterceptor {
    constructor() {
      for (const method of methodsWith(RequestLockInterceptor, prototype)) bindInnermost(method);
    }

    get locks(): LockService {
      return Reflect.get(this, slot) as LockService;
    }

    intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
      const response = rawResponse(context);
      if (!response) return throwError(() => notARequest(name));
      const inContext = AsyncLocalStorage.snapshot();
      return new Observable((subscriber) => {
        const outside = AsyncLocalStorage.snapshot();
        const read = (result: Observable<unknown>): void => outside(() => void result.subscribe(subscriber));
        const outer = inContext(tryOf, response)?.around(id);
        // A request is no part of the work whose async context a callback has led it into.
        const isNested = !inContext(isElsewhere, response);
        const handle = (hold: RequestHold): Observable<unknown> => {
          const begun = new RequestTry({ hold, handler: id, response, outer, inLocks: this.locks.keepInside() });
          return begun.run(() => responseUnlessLost(begun, next.handle(), onLost));
        };
        const begin = (): void => {
          // Made anew for each try: an interceptor may have changed what it is made from.
          const key = keyOrAttachedError(keyOf, context, this.locks.requests);
          const own = holds.find(response, key);
          if (own?.isIdle) return read(this.locks.goOn(own, () => handle(own)));
          this.#inLock({ key, context, response, reader: subscriber, own }, (hold) => read(handle(hold)))
            .then((instead) => (instead instanceof Again ? begin() : instead && read(instead)))
            .catch((error: unknown) => outside(() => subscriber.error(error)));
        };
        const enter = (): void => {
          if (outer) outer.goOn(begin);
          else if (isNested) begin();
          else this.locks.outside(begin);
        };
        inContext(insideRequest, context, enter);
      });
    }

    /**
     * Begins a try in a lock of its own, and holds that until the request is over.
     *
     * @returns what is sent instead when `wait` is over; `Again` if the lock of the same request can be used
     */
    #inLock(
      { key, context, response, reader, own }: TryParts,
      begin: (hold: RequestHold) => void,
    ): Promise<Observable<unknown> | Again | undefined> {
      const { requests } = this.locks;
      const over = new AbortController();
      let began = false;
      let isGivenUp = false;
      const giveUp = (): void => {
        isGivenUp = true;
        if (!began && !over.signal.aborted) over.abort(clientGone());
      };
      reader.add(giveUp);
      const stopWaiting = own?.whenIdle(() => began || over.abort(new Again()));
      // Nobody waits for the handler any more once another interceptor has responded. A response that came before this
      // handler is no reason.
      const stopListening = isOver(response) ? undefined : onceEnded(response, giveUp);
      if (isOver(response) && !isEndedByApp(response)) giveUp();
      const work = (lock: Lock): Promise<void> => {
        over.signal.throwIfAborted();
        began = true;
        stopWaiting?.();
        const takeTurn = () => this.locks.takeTurn(lock, lockOptions);
        const hold = new RequestHold({ lock, takeTurn, response, requests });
        holds.add(response, hold);
        try {
          begin(hold);
        } catch (error) {
          // A mock of a LockService may lack what the handler needs.
          began = false;
          throw error;
        }
        return hold.ended;
      };
      return endedBy(over.signal, lockOptions, (options) => this.locks.withLock(key, work, options)).then(
        // A mock of a LockService may return anything without the work.
        (value: unknown) => (began ? undefined : of(value)),
        async (error: unknown) => {
          stopListening?.();
          stopWaiting?.();
          if (began) return undefined;
          if (error instanceof Again) {
            if (isGivenUp) throw clientGone();
            return error;
          }
          if (onTimeout === 'throw' || !(error instanceof LockTimeoutError)) throw error;
          const value = typeof onTimeout === 'function' ? await onTimeout({ error, args: [context] }) : undefined;
          if (reader.closed) {
            // The try was given up while onTimeout() made what is sent.
            closeUnsent(value);
            return undefined;
          }
          return isObservable(value) ? value : of(value);
        },
      );
    }
  }
  Inject(lockServiceToken(module))(RequestLockInterceptor.prototype, slot);
  // Nest prints both when it can't resolve the service.
  Object.defineProperty(RequestLockInterceptor, 'name', { value: name });
  interceptors.add(RequestLockInterceptor);
  return RequestLockInterceptor;
}

export function notARequest(name: string): LockOptionsError {
  return new LockOptionsError(
    `${name}() has a lock with scope: 'request', but was not called as the handler of an HTTP request, ` +
      'so it did not run. ' +
      `Leave out the scope to hold the lock for each call.`,
  );
}
