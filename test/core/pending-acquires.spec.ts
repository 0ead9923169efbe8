import { beforeEach, describe, expect, it } from '@jest/globals';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { DEFAULT_LOCK_OPTIONS, resolveCallOptions } from '../../lib/core/request/lock-options.js';
import { type LockRequest, lockRequest } from '../../lib/core/request/lock-request.js';
import { LocalQueue } from '../../lib/core/waiting/local-queue.js';
import type { PendingAcquire } from '../../lib/core/waiting/pending-acquire.js';
import { PendingAcquires } from '../../lib/core/waiting/pending-acquires.js';

function requestFor(keys: readonly string[], keptTurns?: readonly string[]): LockRequest {
  return lockRequest(resolveCallOptions(undefined, DEFAULT_LOCK_OPTIONS), { keys, waitSignals: () => [], keptTurns });
}

describe('A place in the queue of the store that a caller has left to the next one of its process', () => {
  let pendingAcquires: PendingAcquires;
  let left: PendingAcquire;

  beforeEach(async () => {
    const queue = new LocalQueue<never>();
    pendingAcquires = new PendingAcquires(new MemoryLockStore(), queue);
    const request = requestFor(['a']);
    left = pendingAcquires.register(request, 'first', 0);
    queue.tryEnter('a');
    const parts = { request, untilMs: Infinity, signals: [], takeTurn: () => undefined, late: () => undefined };
    void queue.enter('a', parts);
    await pendingAcquires.giveUp(left, request);
  });

  it('goes to the next caller of the key', () => {
    expect(pendingAcquires.register(requestFor(['a']), 'second', 0)).toBe(left);
  });

  it('does not go to a caller of several keys that has the turn of another one', () => {
    const other = pendingAcquires.register(requestFor(['a', 'b'], ['b']), 'other', 0);
    expect([other.token, other.keys]).toEqual(['other', ['a', 'b']]);
    expect(pendingAcquires.register(requestFor(['a']), 'second', 0)).toBe(left);
  });
});
