import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockUnavailableError, type LockLostError } from 'nest-redis-lock';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { deferred } from '../support/deferred.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('The end of a lease', () => {
  let store: ScriptedStore;
  let locks: ClosableLockService;

  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['nextTick', 'queueMicrotask', 'setImmediate'] });
    store = new ScriptedStore();
    locks = lockService(store, { lease: 900, shutdownGrace: 0 });
  });

  afterEach(async () => {
    jest.useRealTimers();
    await locks.close();
  });

  it.each([
    ['as it has no watchdog', { watchdog: false }],
    ['as the store never answers', {}],
  ])(
    'the signal aborts slightly before the end of the lease, %s, as an expired lease must have no live signal',
    async (_why, options) => {
      store.afterRenew = () => new Promise<never>(() => undefined);
      const lock = await locks.lock('a', options);
      const left = Math.floor(lock.remaining());

      await jest.advanceTimersByTimeAsync(left - 4);
      expect(lock.signal.aborted).toBe(false);
      await jest.advanceTimersByTimeAsync(3);
      expect(lock.signal.aborted).toBe(true);
    },
  );

  it('a lock that was held when its work ended is not lost, though the store releases it only after its end', async () => {
    const answer = deferred();
    store.release = async (lock) => {
      await answer.promise;
      return store.memory.release(lock);
    };
    const [work, lock] = [locks.withLock('a', () => 'done'), await locks.lock('b', { watchdog: false })];
    const unlocked = lock.unlock();
    await jest.advanceTimersByTimeAsync(1000);
    answer.resolve();
    expect(await work).toBe('done');
    expect(await unlocked).toBe(true);
  });

  it('a lock that could not be renewed says why when its lease is over, and so does the error of its work', async () => {
    const refused = new LockUnavailableError('It refuses.');
    const work = locks.withLock('a', async ({ signal }) => {
      store.renew = () => Promise.reject(refused);
      await new Promise((resolve) => signal.addEventListener('abort', resolve));
      const { reason } = signal as { reason: LockLostError };
      expect(reason).toMatchObject({ reason: 'expired', cause: refused });
      throw new Error('The work stops.');
    });
    const ended = expect(work).rejects.toMatchObject({
      code: 'LOCK_LOST',
      detail: expect.stringMatching(/: its lease ended, and the last attempt to renew it had failed: It refuses\.$/),
      cause: { message: 'The work stops.' },
    });
    await jest.advanceTimersByTimeAsync(900);
    await ended;
  });

  it('a lock that was renewed again after a failure says nothing of that', async () => {
    let refusals = 2;
    store.renew = (renewals) =>
      refusals-- > 0 ? Promise.reject(new LockUnavailableError('It refuses.')) : store.memory.renew(renewals);
    const lock = await locks.lock('a', { maxHold: 800 });
    await jest.advanceTimersByTimeAsync(1800);
    expect(refusals).toBeLessThan(0);
    expect(lock.signal.reason).toMatchObject({
      detail: expect.stringMatching(/Was its "maxHold" over/),
      cause: undefined,
    });
  });

  it('a lock has expired if its lease is over when the store says, before any timer runs, that it is gone', async () => {
    const answer = deferred();
    store.renew = async (renewals) => {
      await answer.promise;
      return { gone: [...renewals], unknown: [] };
    };
    const lock = await locks.lock('a');
    await jest.advanceTimersByTimeAsync(400);
    // Time passes, and no timer runs, as in a process that stands still.
    const now = performance.now.bind(performance);
    jest.spyOn(performance, 'now').mockImplementation(() => now() + 1000);
    answer.resolve();
    await new Promise((resolve) => setImmediate(resolve));
    expect(lock.signal.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'expired' });
    jest.restoreAllMocks();
  });
});
