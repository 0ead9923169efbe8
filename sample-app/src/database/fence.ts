import type { Lock } from 'nest-redis-lock';

/** Returns the fence of a lock that is still held, as text, which is how a bigint travels. */
export function fenceOf(lock: Lock): string {
  lock.assertHeld();
  return String(lock.fence);
}
