import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { LockTimeoutError } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { lockService, type ClosableLockService } from '../support/lock-services.js';

describe('What a time-out says of when to try again', () => {
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

  it.each([
    ['800ms', 1],
    ['20s', 20],
    ['10m', 60],
  ] as const)('is the end of the lease of another process, %s, at most a minute', async (lease, seconds) => {
    await there.lock('a', { lease });
    expect(await retryAfter()).toBe(seconds);
    expect(await retryAfter({ wait: 1 })).toBe(seconds);
    expect(await retryAfter({ fair: true, wait: 1 })).toBe(seconds);
  });

  it('is the end of the lease of another call of the process', async () => {
    await here.lock('a', { lease: '20s' });
    expect(await retryAfter()).toBe(20);
    expect(await retryAfter({ wait: 1 })).toBe(20);
    expect(await retryAfter({ maxWaiters: 0, wait: 1 })).toBe(20);
  });

  it('is known to those, too, who wait behind a call of the process that waits for another one', async () => {
    await there.lock('a', { lease: '20s' });
    const first = here.lock('a', { wait: '5s' }).catch((error: unknown) => error);
    await new Promise(setImmediate);
    expect(await retryAfter({ wait: 20 })).toBe(21);
    await here.close();
    await first;
  });

  it('is a second later for each who waits before', async () => {
    await there.lock('a', { lease: '20s' });
    const waiting = [1, 2, 3].map(() => here.lock('a', { wait: '5s', fair: true }).catch((error: unknown) => error));
    await new Promise(setImmediate);
    expect(await retryAfter({ fair: true, wait: 20 })).toBe(23);
    await here.close();
    await Promise.all(waiting);
  });

  it('is nothing where it is not known: of siblings in one outer call', async () => {
    await here.withLock('a', async () => {
      const sibling = await here.lock('a');
      expect(await retryAfter()).toBeUndefined();
      await sibling.unlock();
    });
  });
});
