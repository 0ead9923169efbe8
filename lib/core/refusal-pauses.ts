// Not those that a test may have replaced: each call settles, also after the shutdown.
import { clearTimeout, setTimeout } from 'node:timers';
import { waitFor } from '../clock/wait-for.js';

/**
 * How long it takes at most to refuse a call that comes during the shutdown, in ms. Until the process ends, workers
 * fetch one job after the other, and would fail a whole queue of them.
 */
const REFUSAL_MS = 1000;

/** End the pauses of the calls of all services: Nest may end the process when the last service has ended. */
const pauses = new Set<() => void>();

/**
 * Waits a moment before a call hears that it is refused.
 *
 * @throws the reason of a signal that aborts meanwhile
 */
export async function pauseBeforeRefusal(signals: readonly AbortSignal[]): Promise<void> {
  let end!: () => void;
  let timer!: NodeJS.Timeout;
  const start = (done: (value: void) => void): void => {
    pauses.add((end = done));
    timer = setTimeout(end, REFUSAL_MS);
  };
  const stop = (): void => {
    clearTimeout(timer);
    pauses.delete(end);
  };
  await waitFor<void>(Infinity, signals, start, stop);
}

/** Lets all calls hear at once that they are refused. */
export function endPauses(): void {
  for (const end of pauses) end();
}
