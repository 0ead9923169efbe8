import type { Lock } from '../../core/lock/lock.js';
import type { LockKey } from '../../core/request/lock-key.js';
import type { WithLockOptions } from '../../core/request/lock-options.js';
import type { RequestPort } from '../../service/request-port.js';

/** Makes the key of a call, or attaches the error to the request of the call. */
export function keyOrAttachedError<A>(keyOf: (args: A) => LockKey, args: A, requests: RequestPort): LockKey {
  try {
    return keyOf(args);
  } catch (error) {
    throw requests.attachError(error);
  }
}

/** Adds a signal that ends the wait to the options of a lock. */
export function endedBy(signal: AbortSignal | undefined, options: WithLockOptions): WithLockOptions {
  if (!signal) return options;
  return { ...options, signal: options.signal ? AbortSignal.any([options.signal, signal]) : signal };
}

/** Puts the lock where `@CurrentLock()` stands among the arguments. */
export function withCurrentLock(args: unknown[], indexes: readonly number[], lock: Lock): unknown[] {
  if (indexes.length === 0) return args;
  const copy = [...args];
  for (const index of indexes) copy[index] = lock;
  return copy;
}
