import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

/** Far longer than the clocks are left alone: no renewal finds anything out. */
const LEASE = '1h';
const HOUR_MS = 3_600_000;

/** The clocks are compared in this time. */
const LOOK_MS = 1000;

describe('Suspended machines', () => {
  let store: MemoryLockStore;
  let locks: ClosableLockService;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    store = new MemoryLockStore();
    locks = lockService(store, { lease: LEASE, shutdownGrace: 0 });
  });

  afterEach(async () => {
    jest.useRealTimers();
    await locks.close();
  });

  const setTime = (byMs: number) => jest.setSystemTime(Date.now() + byMs);

  it('a machine whose time of day has jumped forward asks at once which locks it still has', async () => {
    const [ended, held, unwatched] = [
      await locks.lock('a'),
      await locks.lock('b'),
      await locks.lock('c', { watchdog: false }),
    ];
    for (const { keys, token } of [ended, unwatched]) await store.release({ keys, token, leaseMs: 1 });
    setTime(HOUR_MS);
    expect(ended.isHeld).toBe(true);
    await jest.advanceTimersByTimeAsync(LOOK_MS);
    expect(ended.loss).toMatchObject({ reason: 'taken' });
    expect(unwatched.loss).toMatchObject({ reason: 'taken' });
    expect(held.isHeld).toBe(true);
    expect(await held.unlock()).toBe(true);
  });

  it.each([
    [
      'throws',
      () => {
        throw new Error('of the store');
      },
    ],
    ['returns nothing', () => undefined],
  ])('a machine whose store %s when it is asked keeps its locks', async (_what, renew) => {
    const held = await locks.lock('a');
    const asked = jest.spyOn(store, 'renew').mockImplementation(renew as () => never);
    setTime(HOUR_MS);
    await jest.advanceTimersByTimeAsync(LOOK_MS);
    expect([asked.mock.calls.length, held.isHeld]).toEqual([1, true]);
  });

  it('a machine asks once for each jump of its time of day, and not when it is set back or holds nothing', async () => {
    const asked = jest.spyOn(store, 'renew');
    const look = () => jest.advanceTimersByTimeAsync(LOOK_MS);
    const held = await locks.lock('a');
    for (const byMs of [0, -HOUR_MS, 200, 200]) {
      setTime(byMs);
      await look();
    }
    expect(asked).not.toHaveBeenCalled();
    setTime(HOUR_MS);
    await look();
    await look();
    expect(asked).toHaveBeenCalledTimes(1);
    await held.unlock();
    await look();
    setTime(HOUR_MS);
    await locks.lock('a');
    await look();
    expect(asked).toHaveBeenCalledTimes(1);
  });
});
