import { timerAt } from './deadline.js';

/**
 * Waits until `start` reports back, at most until `untilMs` of the monotonic clock.
 * Timer and listeners are gone when it settles; `stop` runs however it ends.
 *
 * @returns true when `start` reported, false at the deadline
 * @throws what `start` failed with, or the reason of the first signal that aborts
 */
export function waitFor(
  untilMs: number,
  signals: readonly AbortSignal[],
  start: (done: () => void, fail: (error: Error) => void) => void = () => undefined,
  stop: () => void = () => undefined,
): Promise<boolean> {
  const aborted = signals.find((signal) => signal.aborted);
  if (aborted) return Promise.reject(aborted.reason);

  return new Promise<boolean>((resolve, reject) => {
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
      resolve(false);
    });
    for (const signal of signals) signal.addEventListener('abort', onAbort);
    start(
      () => {
        end();
        resolve(true);
      },
      (error) => {
        end();
        reject(error);
      },
    );
  });
}
