import { timerAt } from './deadline.js';
import { onAbort } from './on-abort.js';

/**
 * Waits until `start` reports something, at most until `untilMs` of the monotonic clock.
 * Timer and listeners are gone when it settles; `stop` runs however it ends.
 *
 * @param late makes what is returned at the deadline. Default: undefined
 * @returns what `start` reported
 * @throws what `start` failed with, or the reason of the first signal that aborts
 */
export function waitFor<T, Late = undefined>(
  untilMs: number,
  signals: readonly AbortSignal[],
  start: (done: (value: T | Promise<T>) => void, fail: (error: unknown) => void) => void,
  stop: () => void,
  late?: () => Late | Promise<Late>,
): Promise<T | Late> {
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) return Promise.reject(aborted.reason);

  return new Promise<T | Late>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      for (const stopListening of listening) stopListening();
      stop();
    };
    const timer = timerAt(untilMs, () => {
      end();
      resolve(late?.() as Late);
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
