import { afterEach, beforeEach, expect, it, jest } from '@jest/globals';
import type { Lock, LockOptions } from 'nest-redis-lock';
import { of } from 'rxjs';
import { holdUntilEnd } from '../../lib/decorators/stream/hold-until-end.js';
import { leaveUnread } from '../../lib/core/result-work.js';
import { until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ShortGrantStore } from '../support/stores/short-grant-store.js';

const SHORT_MS = 2000;
const LEASE_MS = 10_000;

let store: ShortGrantStore;
let here: ClosableLockService;
let there: ClosableLockService;

beforeEach(() => {
  store = new ShortGrantStore(SHORT_MS);
  here = lockService(store, { lease: LEASE_MS, shutdownGrace: 0 });
  there = lockService(store, { lease: LEASE_MS, shutdownGrace: 0 });
});

afterEach(async () => {
  await here.close();
  await there.close();
});

/** A lock that was waited for. */
async function handedOver(options?: LockOptions): Promise<Lock> {
  const before = await there.lock('feed');
  const next = here.lock('feed', options);
  await until(() => store.waiters('feed') === 1);
  await before.unlock();
  return next;
}

/** For how long a stream that keeps this lock waits for its first reader, in ms. */
function waitsForReader(lock: Lock): number | undefined {
  const timer = jest.spyOn(globalThis, 'setTimeout');
  const stream = holdUntilEnd(of(1), { lock, onLost: 'throw', requests: here.requests });
  const [delay, ...others] = timer.mock.calls.map(([, delayMs]) => delayMs);
  timer.mockRestore();
  leaveUnread(stream);
  expect(others).toEqual([]);
  return delay;
}

it('a stream that nobody reads keeps its lock for the lease that was asked for, not for a short grant', async () => {
  const lock = await handedOver();
  expect(lock.remaining()).toBeLessThan(SHORT_MS);
  expect(waitsForReader(lock)).toBe(LEASE_MS);
  const shorter = await handedOver({ lease: 5000 });
  expect(waitsForReader(shorter)).toBe(5000);
});

it('a stream in a call that is nested in one that has waited keeps its lock for the lease of that one', async () => {
  const before = await there.lock('feed');
  const nested = here.withLock('feed', () => here.withLock('feed', async () => waitsForReader(here.current()!)));
  await until(() => store.waiters('feed') === 1);
  await before.unlock();
  expect(await nested).toBe(LEASE_MS);
});

it('a stream whose lock is unlocked already waits for nobody', async () => {
  const lock = await handedOver();
  await lock.unlock();
  expect(waitsForReader(lock)).toBe(0);
});
