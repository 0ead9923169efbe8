import { timerAt } from './deadline.js';
import { onAbort } from './on-abort.js';

/**
 * Waits until `start` reports something, at most until `untilMs` of the monotonic clock.
 * Timer and listeners are gone when it settles; `stop` runs however it ends.
 *
 * @returns what `start` reported, undefined at the deadline
 * @throws what `start` failed with, or the reason of the first signal that aborts
 */
export function waitFor<T>(
  untilMs: number,
  signals: readonly AbortSignal[],
  start: (done: (value: T) => void, fail: (error: unknown) => void) => void,
  stop: () => void,
): Promise<T | undefined> {
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) return Promise.reject(aborted.reason);

  return new Promise<T | undefined>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      for (const stopListening of listening) stopListening();
      stop();
    };
    const timer = timerAt(untilMs, () => {
      end();
      resolve(undefined);
    });
    const fail = (error: unknown) => {
      end();
      reject(error);
    };
    const listening = signals.map((signal) => onAbort(signal, () => fail(signal.reason)));
    start((value) => {
      end();
      resolve(value);
    }, fail);
  });
}
