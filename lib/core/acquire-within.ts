import { now } from '../clock/deadline.js';
import { enterKeys, leaveKeys } from './enter-keys.js';
import type { LockRequest, Refusal } from './lock-request.js';
import { Lock, type LockGiver } from './lock.js';

interface Outside {
  /** `host:pid` of this process, to name who has the key. */
  readonly holder: string;
  readonly giver: LockGiver;
  /** Takes a lock that is nested in none. */
  acquire(request: LockRequest): Promise<Lock | Refusal>;
}

/**
 * Takes keys that `outer` holds already: asks the store nothing, and waits only for siblings nested in `outer` too.
 *
 * @throws LockUnavailableError, or the reason of a signal that aborts the wait
 */
export async function acquireWithin(outer: Lock, request: LockRequest, outside: Outside): Promise<Lock | Refusal> {
  const { keys, signal, waitMs } = request;
  signal?.throwIfAborted();
  const startedAt = now();
  const passage = await enterKeys(outer.inner, request, { startedAt, holder: outside.holder });
  if (passage !== 'turn') return passage;
  if (outer.isHeld) {
    for (const key of keys) outer.inner.setFront(key, 'inside');
    return new Lock({ keys, fence: outer.fence, lease: outer.lease, giver: outside.giver, outer });
  }
  // The outer call ended while this one queued behind a sibling: it belongs to the next one out, or stands on its own.
  leaveKeys(outer.inner, keys);
  const rest = { ...request, waitMs: Math.max(0, startedAt + waitMs - now()) };
  return outer.outer ? acquireWithin(outer.outer, rest, outside) : outside.acquire(rest);
}
