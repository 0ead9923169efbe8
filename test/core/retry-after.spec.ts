import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockTimeoutError } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

/** The advice of an error with these facts. */
const retryAfterOf = (facts: { waitedMs: number; leaseLeftMs: number }) =>
  new LockTimeoutError({
    ...facts,
    keys: ['a'],
    label: undefined,
    reason: 'held',
    waitMs: facts.waitedMs,
    holder: undefined,
    ahead: 0,
    maxWaiters: 1,
    holding: [],
  }).retryAfter;

describe('retryAfter of a time-out', () => {
  let here: ClosableLockService;
  let there: ClosableLockService;

  beforeEach(() => {
    const store = new MemoryLockStore();
    [here, there] = [lockService(store, { shutdownGrace: 0 }), lockService(store, { shutdownGrace: 0 })];
  });

  afterEach(() => Promise.all([here.close(), there.close()]));

  const retryAfter = async (options = {}): Promise<number | undefined> => {
    const error = (await here.lock('a', { wait: 0, ...options }).catch((error: unknown) => error)) as LockTimeoutError;
    expect(error.code).toBe('LOCK_TIMEOUT');
    expect((error.getResponse() as { retryAfter?: number }).retryAfter).toBe(error.retryAfter);
    return error.retryAfter;
  };

  it.each(['800ms', '20s', '10m'] as const)(
    'retryAfter is a second for a caller that did not wait, whatever the lease of another process (%s)',
    async (lease) => {
      await there.lock('a', { lease });
      expect(await retryAfter()).toBe(1);
      expect(await retryAfter({ wait: 1 })).toBe(1);
      expect(await retryAfter({ fair: true, wait: 1 })).toBe(1);
    },
  );

  it('retryAfter is as long as the caller has waited, but never later than the end of the lease', async () => {
    await there.lock('a', { lease: '20s' });
    await there.lock('b', { lease: '10s' });
    await here.lock('c', { lease: '10s' });
    const after = async (key: string) =>
      ((await here.lock(key, { wait: 1200 }).catch((error: unknown) => error)) as LockTimeoutError).retryAfter;
    expect(await Promise.all(['a', 'b', 'c'].map(after))).toEqual([2, 2, 2]);
    expect(retryAfterOf({ waitedMs: 30_000, leaseLeftMs: 12_100 })).toBe(13);
    expect(retryAfterOf({ waitedMs: 200_000, leaseLeftMs: 600_000 })).toBe(60);
  });

  it('retryAfter is known also to those behind a call of their process that waits for another one', async () => {
    await there.lock('a', { lease: '20s' });
    const first = here.lock('a', { wait: '5s' }).catch((error: unknown) => error);
    await new Promise(setImmediate);
    expect(await retryAfter({ wait: 20 })).toBe(2);
    await here.close();
    await first;
  });

  it('retryAfter is a second later for each waiter ahead', async () => {
    await there.lock('a', { lease: '20s' });
    const waiting = [1, 2, 3].map(() => here.lock('a', { wait: '5s', fair: true }).catch((error: unknown) => error));
    await new Promise(setImmediate);
    expect(await retryAfter({ fair: true, wait: 20 })).toBe(4);
    await here.close();
    await Promise.all(waiting);
  });

  it('retryAfter is undefined where it is not known: of siblings in one outer call', async () => {
    await here.withLock('a', async () => {
      const sibling = await here.lock('a');
      expect(await retryAfter()).toBeUndefined();
      await sibling.unlock();
    });
  });
});
