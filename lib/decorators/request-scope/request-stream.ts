import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable } from 'rxjs';
import { lostError } from '../../service/call-errors.js';
import { failWhenLost } from '../stream/held-observable.js';
import { untilUnsubscribed } from '../stream/until-unsubscribed.js';
import { Turn } from './handler-turn.js';
import type { RequestHold } from './request-hold.js';

/**
 * Lets an Observable that a handler has returned be read by one at a time, and only while the lock is not lost and the
 * request is not over. The end of the request releases the lock.
 */
export function readableWhileHeld(
  source: Observable<unknown>,
  hold: RequestHold,
  onLost: 'throw' | 'ignore',
): Observable<unknown> {
  const inside = AsyncLocalStorage.snapshot();
  return new Observable((subscriber) => {
    const read = (turn: Turn): void => {
      subscriber.add(() => turn.end());
      if (subscriber.closed) return;
      if (onLost === 'throw') {
        try {
          hold.assertReadable();
        } catch (error) {
          return subscriber.error(inside(() => hold.requests.attachError(error)));
        }
        subscriber.add(failWhenLost(hold, subscriber, inside));
      }
      inside(() => turn.run(() => untilUnsubscribed(source, subscriber, inside).subscribe(subscriber)));
    };
    const turn = inside(() => hold.takeTurn());
    if (turn instanceof Turn) read(turn);
    else turn.then(read, (error: unknown) => subscriber.error(error));
  });
}

/** Sends on the response of the handler, or the loss of the lock if that comes first. */
export function responseUnlessLost(
  hold: RequestHold,
  source: Observable<unknown>,
  onLost: 'throw' | 'ignore',
): Observable<unknown> {
  return new Observable((subscriber) => {
    const leave = hold.enter();
    const response = untilUnsubscribed(source, subscriber);
    subscriber.add(leave);
    const unlessLost = (send: () => void, cause?: unknown): void => {
      if (subscriber.closed) return;
      // `isHeld` reads the clock, so it knows a loss that no timer has reported yet. A lock that the handler has
      // released is not lost.
      const lost = onLost === 'throw' && !hold.lock.isHeld ? hold.lock.loss : undefined;
      if (!lost) send();
      else subscriber.error(lostError(lost, hold.requests, cause));
    };
    response.subscribe({
      next: (value) => unlessLost(() => subscriber.next(value)),
      error: (error: unknown) => unlessLost(() => subscriber.error(error), error),
      complete: () => unlessLost(() => subscriber.complete()),
    });
  });
}
