import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable } from 'rxjs';
import { leaveUnread } from '../../core/result-work.js';
import { lostError } from '../../service/call-errors.js';
import { failWhenLost } from '../stream/held-observable.js';
import { observerIn } from '../../clock/observer-in.js';
import { lossToTell } from '../stream/stream-hold.js';
import { untilUnsubscribed } from '../stream/until-unsubscribed.js';
import type { HandlerCall } from './handler-call.js';
import { Turn } from './handler-turn.js';
import type { RequestTry } from './request-try.js';
import { closeUnsent } from './unsent-body.js';

/**
 * Lets an Observable that a handler has returned be read by one at a time, and only while the lock is not lost and the
 * request is not over. The end of the request releases the lock. The interceptors above hear it inside the lock,
 * whoever emits it.
 */
export function readableWhileHeld(source: Observable<unknown>, call: HandlerCall): Observable<unknown> {
  const { hold, onLost } = call;
  const inside = AsyncLocalStorage.snapshot();
  return new Observable((subscriber) => {
    const read = (turn: Turn): void => {
      subscriber.add(() => turn.end());
      if (subscriber.closed) return;
      try {
        subscriber.add(hold.startStream());
        if (onLost === 'throw') hold.assertReadable();
      } catch (error) {
        leaveUnread(source);
        return inside(() => subscriber.error(hold.requests.attachError(error)));
      }
      if (onLost === 'throw') subscriber.add(failWhenLost(hold, subscriber, inside));
      const subscribe = (): unknown => {
        const inTurn = AsyncLocalStorage.snapshot();
        return untilUnsubscribed(source, subscriber, inside).subscribe(observerIn(inTurn, subscriber));
      };
      inside(() => turn.run(subscribe));
    };
    const turn = inside(() => hold.takeTurn(call));
    if (turn instanceof Turn) read(turn);
    else turn.then(read, (error: unknown) => inside(() => subscriber.error(error)));
  });
}

/**
 * Sends on the response of the handler, or the loss of the lock if that comes first. The interceptors inside the lock
 * run in its async context, whoever reads the response; its reader runs in its own.
 */
export function responseUnlessLost(
  begun: RequestTry,
  source: Observable<unknown>,
  onLost: 'throw' | 'ignore',
): Observable<unknown> {
  const { hold, reading } = begun;
  const inside = AsyncLocalStorage.snapshot();
  return new Observable((subscriber) => {
    const outside = AsyncLocalStorage.snapshot();
    const response = untilUnsubscribed(source, reading, inside);
    hold.begin(begun);
    let hasEnded = false;
    subscriber.add(() => (hasEnded ? reading.unsubscribe() : hold.goOnUnread(reading)));
    /** Returns whether it has sent it. */
    const unlessLost = (send: () => void, cause?: unknown): boolean => {
      if (subscriber.closed) return false;
      const lost = lossToTell({ lock: hold.lock, onLost });
      const error = lost && lostError(lost, hold.requests, cause);
      outside(error ? () => subscriber.error(error) : send);
      return !error;
    };
    const end = (send: () => void, cause?: unknown): void => {
      hasEnded = true;
      unlessLost(send, cause);
      reading.unsubscribe();
    };
    begun.onEndless((error) => end(() => subscriber.error(error), error));
    const read = (): unknown =>
      response.subscribe({
        next: (value) => unlessLost(() => subscriber.next(value)) || closeUnsent(value),
        error: (error: unknown) => end(() => subscriber.error(error), error),
        complete: () => end(() => subscriber.complete()),
      });
    inside(read);
  });
}
