import type { AsyncLocalStorage } from 'node:async_hooks';

/** An observer of RxJS. */
interface Observer {
  readonly next: (value: unknown) => void;
  readonly error: (reason: unknown) => void;
  readonly complete: () => void;
}

/** Makes an observer that tells another one everything in one async context, whoever emits it. */
export function observerIn(context: ReturnType<typeof AsyncLocalStorage.snapshot>, observer: Observer): Observer {
  // Made once, not for each value.
  const next = (value: unknown): void => observer.next(value);
  const error = (reason: unknown): void => observer.error(reason);
  const complete = (): void => observer.complete();
  return {
    next: (value) => context(next, value),
    error: (reason) => context(error, reason),
    complete: () => context(complete),
  };
}
