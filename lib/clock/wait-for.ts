import { timerAt } from './deadline.js';

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
  start: (done: (value: T) => void, fail: (error: Error) => void) => void,
  stop: () => void,
): Promise<T | undefined> {
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) return Promise.reject(aborted.reason);

  return new Promise<T | undefined>((resolve, reject) => {
    const end = () => {
      clearTimeout(timer);
      for (const signal of signals) signal.removeEventListener('abort', onAbort);
      stop();
    };
    const onAbort = (event: Event) => {
      end();
      reject((event.target as AbortSignal).reason);
    };
    const timer = timerAt(untilMs, () => {
      end();
      resolve(undefined);
    });
    for (const signal of signals) signal.addEventListener('abort', onAbort);
    start(
      (value) => {
        end();
        resolve(value);
      },
      (error) => {
        end();
        reject(error);
      },
    );
  });
}
