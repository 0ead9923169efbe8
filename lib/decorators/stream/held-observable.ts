import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable, type Observer } from 'rxjs';
import { observerIn } from '../../clock/observer-in.js';
import { onAbort } from '../../clock/on-abort.js';
import { PacedTurns } from '../../clock/paced-turns.js';
import { leaveUnread, noteWork } from '../../core/result-work.js';
import { lossToTell, StreamHold, toldError, type StreamLock } from './stream-hold.js';
import { untilUnsubscribed } from './until-unsubscribed.js';

/**
 * Makes an Observable keep the lock until its last reader has left, and its source has cleaned up, as in `finalize()`.
 * It completes or fails only when the key is free. The source runs inside the lock, whoever reads it; its readers run
 * in their own async contexts.
 */
export function heldObservable(source: Observable<unknown>, streamLock: StreamLock): Observable<unknown> {
  const { onLost } = streamLock;
  const hold = new StreamHold(streamLock);
  const inside = AsyncLocalStorage.snapshot();
  /** Of readers that come when the stream has ended. */
  const refusals = new PacedTurns();
  let readers = 0;
  const leave = (): Promise<void> => (--readers > 0 ? Promise.resolve() : hold.end());

  const held = new Observable((subscriber) => {
    const reader = observerIn(AsyncLocalStorage.snapshot(), subscriber);
    const tell = (failure?: unknown): void => reader.error(inside(() => toldError(streamLock, failure)));
    try {
      hold.startReading(onLost);
    } catch (error) {
      if (readers === 0) leaveUnread(source);
      void refusals.next().then(() => tell(error));
      return;
    }
    readers++;
    const stopListening = onLost === 'throw' ? failWhenLost(streamLock, reader, inside) : undefined;
    // Only the release may have found out that the lock is lost.
    let report = (): void => (lossToTell(streamLock) ? tell() : reader.complete());
    const failed = (error: unknown): void => void (report = () => tell(error));
    const end = (): void => {
      stopListening?.();
      void leave().then(report);
    };
    const read = (): void => {
      const reading = apart(untilUnsubscribed(source, subscriber, inside)).subscribe({
        next: reader.next,
        error: failed,
      });
      // Added last, so the source has cleaned up when it runs. What others share may do so later in the same tick. No
      // fake timer replaces a promise, as it does queueMicrotask().
      reading.add(() => void Promise.resolve().then(end));
    };
    try {
      inside(read);
    } catch (error) {
      failed(error);
      end();
    }
  });
  return noteWork(held, { ended: hold.ended, leave: () => hold.leaveUnread(source) });
}

/**
 * Gives a source a subscriber of its own, which gets all that it adds while it works, such as inner Observables: what
 * is added to the reader comes after that. And an Observable of an old rxjs ends only what it has made itself.
 */
const apart = (source: Observable<unknown>): Observable<unknown> =>
  new Observable((subscriber) =>
    source.subscribe({
      next: (value) => subscriber.next(value),
      error: (error: unknown) => subscriber.error(error),
      complete: () => subscriber.complete(),
    }),
  );

/**
 * Fails a reader when the lock is lost.
 *
 * @param inside runs a function in the async context of the lock
 * @returns a function that stops listening
 */
export function failWhenLost(
  { lock, requests }: Omit<StreamLock, 'onLost'>,
  reader: Pick<Observer<unknown>, 'error'>,
  inside: ReturnType<typeof AsyncLocalStorage.snapshot>,
): () => void {
  const { signal } = lock;
  return onAbort(signal, () => inside(() => reader.error(requests.attachError(signal.reason as unknown))));
}
