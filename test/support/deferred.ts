import { setTimeout as sleep } from 'node:timers/promises';

export interface Deferred<T = void> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
  readonly reject: (error: unknown) => void;
}

export function deferred<T = void>(): Deferred<T> {
  let parts: Omit<Deferred<T>, 'promise'>;
  const promise = new Promise<T>((resolve, reject) => (parts = { resolve, reject }));
  return { promise, ...parts! };
}

/** Resolves when the signal aborts. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => {
    if (signal.aborted) resolve(signal.reason);
    else signal.addEventListener('abort', () => resolve(signal.reason), { once: true });
  });
}

/** As when the machine has no time for the process. */
export function standStill(ms: number): void {
  const until = performance.now() + ms;
  while (performance.now() < until);
}

/** Lets every callback that is ready now run. */
export const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/**
 * How long `until` looks in each turn of the event loop, and how often it looks after that: what takes long needs the
 * processor itself.
 */
const EAGER_MS = 50;
const LOOKS_EVERY_MS = 3;

/**
 * Resolves when the condition holds, for what nobody announces; gives up after 12 s if not told otherwise: busy
 * machines take that long to start processes.
 */
export async function until(condition: () => boolean | Promise<boolean>, patienceMs = 12_000): Promise<void> {
  const begunAt = performance.now();
  while (!(await condition())) {
    const passedMs = performance.now() - begunAt;
    if (passedMs > patienceMs) throw new Error(`This never came true: ${condition.toString()}`);
    await (passedMs < EAGER_MS ? turn() : sleep(LOOKS_EVERY_MS));
  }
}
