import type { Lock } from './lock.js';

/**
 * Gives back a lock that came too late for its caller.
 *
 * @throws the reason of the signal that aborted
 */
export async function giveBack(lock: Lock, { reason }: AbortSignal): Promise<never> {
  noteNoWork(lock);
  await lock.unlock();
  throw reason;
}

/** Notes that no work has begun in a lock, so there is none after which its keys would have to stay for `atLeast`. */
export function noteNoWork(lock: Lock): void {
  if (!lock.isNested) lock.leases[0]!.keepNoLonger();
}
