import type { Lock } from './lock.js';

/**
 * Gives back a lock that came too late for its caller.
 *
 * @throws the reason of the signal that aborted
 */
export async function giveBack(lock: Lock, { reason }: AbortSignal): Promise<never> {
  await lock.unlock();
  throw reason;
}
