import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable, type Subscriber } from 'rxjs';
import { noteHold, StreamHold, type StreamLock } from './stream-hold.js';
import { untilUnsubscribed } from './until-unsubscribed.js';

/**
 * Makes an Observable keep the lock until its last reader has left. It completes or fails only when the key is free.
 */
export function heldObservable(source: Observable<unknown>, streamLock: StreamLock): Observable<unknown> {
  const { onLost } = streamLock;
  const hold = new StreamHold(streamLock);
  const inside = AsyncLocalStorage.snapshot();
  let readers = 0;
  const leave = (): Promise<void> => (--readers > 0 ? Promise.resolve() : hold.end());

  const held = new Observable((subscriber) => {
    hold.startReading(onLost);
    readers++;
    const stopListening = onLost === 'throw' ? failWhenLost(streamLock, subscriber, inside) : undefined;
    const end = (report: () => void): void => {
      stopListening?.();
      void leave().then(report);
    };
    const failed = (error: unknown): void => end(() => subscriber.error(error));
    const read = (): unknown =>
      untilUnsubscribed(source, subscriber, inside).subscribe({
        next: (value) => subscriber.next(value),
        error: failed,
        complete: () => end(() => subscriber.complete()),
      });
    try {
      inside(read);
    } catch (error) {
      failed(error);
    }
  });
  return noteHold(held, hold);
}

/**
 * Fails a subscriber when the lock is lost.
 *
 * @param inside runs a function in the async context of the lock
 * @returns a function that stops listening
 */
export function failWhenLost(
  { lock, requests }: Omit<StreamLock, 'onLost'>,
  subscriber: Subscriber<unknown>,
  inside: ReturnType<typeof AsyncLocalStorage.snapshot>,
): () => void {
  const { signal } = lock;
  const fail = () => inside(() => subscriber.error(requests.attachError(signal.reason as unknown)));
  signal.addEventListener('abort', fail, { once: true });
  return () => signal.removeEventListener('abort', fail);
}
