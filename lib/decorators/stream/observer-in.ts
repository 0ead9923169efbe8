import type { AsyncLocalStorage } from 'node:async_hooks';
import type { Observer } from 'rxjs';

/** Makes an observer that tells another one everything in one async context, whoever emits it. */
export function observerIn(
  context: ReturnType<typeof AsyncLocalStorage.snapshot>,
  observer: Observer<unknown>,
): Observer<unknown> {
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
