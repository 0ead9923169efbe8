import { onAbort } from '../../clock/on-abort.js';
import type { Lock } from '../../core/lock/lock.js';
import type { LockKey } from '../../core/request/lock-key.js';
import type { WithLockOptions } from '../../core/request/lock-options.js';
import type { RequestPort } from '../../service/request-port.js';

/**
 * Makes the key of a call, or attaches the error to the request of the call.
 *
 * @param requests a mock of a `LockService` has none
 */
export function keyOrAttachedError<A>(
  keyOf: (args: A) => LockKey,
  args: A,
  requests: RequestPort | undefined,
): LockKey {
  try {
    return keyOf(args);
  } catch (error) {
    requests?.attachError(error);
    throw error;
  }
}

/**
 * Calls with the options of a lock and a further signal that ends the wait. The listeners are removed when the call has
 * settled: on Node 20, a signal made by `AbortSignal.any()` stays with its sources as long as these live.
 */
export function endedBy<T>(
  signal: AbortSignal,
  options: WithLockOptions,
  call: (options: WithLockOptions) => Promise<T>,
): Promise<T> {
  if (!options.signal) return call({ ...options, signal });
  const either = new AbortController();
  const removals = [options.signal, signal].map((source) => {
    const abort = (): void => either.abort(source.reason);
    if (source.aborted) abort();
    return onAbort(source, abort);
  });
  return call({ ...options, signal: either.signal }).finally(() => {
    for (const remove of removals) remove();
  });
}

/** Puts the lock where `@CurrentLock()` stands among the arguments. */
export function withCurrentLock(args: unknown[], indexes: readonly number[], lock: Lock): unknown[] {
  if (indexes.length === 0) return args;
  const copy = [...args];
  for (const index of indexes) copy[index] = lock;
  return copy;
}
