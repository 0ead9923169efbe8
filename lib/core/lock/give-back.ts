import type { Lock } from './lock.js';

/**
 * Gives back a lock that came too late for its caller.
 *
 * @throws the reason of the signal that aborted
 */
export async function giveBack(lock: Lock, { reason }: AbortSignal): Promise<never> {
  // No work has begun, so there is none after which the keys would have to stay.
  if (!lock.isNested) lock.leases[0]!.keepNoLonger();
  await lock.unlock();
  throw reason;
}
