import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { LockUnavailableError, type Lock, type LockLostError, type LockOptions } from 'nest-redis-lock';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { aborted, deferred, turn } from '../support/deferred.js';
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

  describe('at shutdown', () => {
    const [keys, lease] = [['a', 'b'], 900];
    const without = (key: string, { token }: Lock) => store.memory.release({ keys: [key], token, leaseMs: lease });

    /** How a lock is lost of which the store keeps keys, though the lease that it has confirmed is over. */
    const LOSSES: [string, (locks: ClosableLockService) => Promise<Lock>][] = [
      [
        'a renewal that finds one of its keys gone lengthens the others',
        async (locks) => {
          const lock = await locks.lock(keys);
          await without('b', lock);
          await jest.advanceTimersByTimeAsync(300);
          expect(lock.signal.reason).toMatchObject({ reason: 'taken' });
          await jest.advanceTimersByTimeAsync(700);
          return lock;
        },
      ],
      [
        'an extension that finds one of its keys gone lengthens the others',
        async (locks) => {
          const lock = await locks.lock(keys, { watchdog: false });
          await without('b', lock);
          await expect(lock.extend('60s')).rejects.toMatchObject({ reason: 'taken' });
          await jest.advanceTimersByTimeAsync(50_000);
          return lock;
        },
      ],
      [
        'the store runs its renewals and never answers',
        async (locks) => {
          const lock = await locks.lock('a');
          store.afterRenew = () => new Promise<never>(() => undefined);
          await jest.advanceTimersByTimeAsync(lease);
          expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
          return lock;
        },
      ],
      [
        'the store has extended it without a reply',
        async (locks) => {
          const lock = await locks.lock('a', { watchdog: false });
          store.afterRenew = () => new Promise<never>(() => undefined);
          void lock.extend('60s').catch(() => undefined);
          await jest.advanceTimersByTimeAsync(lease);
          expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
          return lock;
        },
      ],
      [
        'the store has extended it without a reply, and then confirms shorter renewals',
        async (locks) => {
          const lock = await locks.lock('a', { maxHold: 500 });
          store.afterRenew = () => new Promise<never>(() => undefined);
          void lock.extend('60s').catch(() => undefined);
          await turn();
          store.afterRenew = () => Promise.resolve();
          await jest.advanceTimersByTimeAsync(2 * lease);
          expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
          return lock;
        },
      ],
      [
        'the store runs a short extension late, and without a reply',
        async (locks) => {
          const lock = await locks.lock('a', { watchdog: false });
          await lock.extend(lease);
          store.renew = async (renewals) => {
            await new Promise((resolve) => setTimeout(resolve, 600));
            await store.memory.renew(renewals);
            return new Promise<never>(() => undefined);
          };
          void lock.extend(lease - 100).catch(() => undefined);
          await jest.advanceTimersByTimeAsync(lease);
          expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
          return lock;
        },
      ],
    ];

    it.each<[string, LockOptions, (lock: Lock) => unknown]>([
      ['by its maxHold', { maxHold: 500 }, () => undefined],
      ['after an extension', { watchdog: false }, (lock) => lock.extend(lease)],
    ])('a shutdown waits for no lost lock whose renewals were all confirmed: lost %s', async (_how, options, renew) => {
      // A time as that of a machine, which is no whole number.
      const now = performance.now.bind(performance);
      jest.spyOn(performance, 'now').mockImplementation(() => now() + 0.5);
      const lock = await locks.lock('a', { lease, ...options });
      await jest.advanceTimersByTimeAsync(1);
      await renew(lock);
      while (!lock.signal.aborted) await jest.advanceTimersByTimeAsync(100);
      expect(lock.signal.reason).toMatchObject({ reason: 'expired' });
      // No time passes.
      await locks.close();
      jest.restoreAllMocks();
    });

    it.each(LOSSES)('what is left of a lost lock is released: %s', async (_how, lose) => {
      await lose(locks);
      expect(await store.isLocked('a')).toBe(true);
      const closed = locks.close();
      await jest.advanceTimersByTimeAsync(1);
      await closed;
      expect(await store.isLocked('a')).toBe(false);
    });

    it.each(LOSSES)('what is left of a lost lock is kept for its work: %s', async (_how, lose) => {
      const patient = lockService(store, { lease, shutdownGrace: '60s' });
      const lock = await lose(patient);
      let isClosed = false;
      const closed = patient.close().then(() => (isClosed = true));
      // More than a shutdown takes that waits for nothing.
      for (let turns = 0; turns < 10; turns++) await turn();
      expect([isClosed, await store.isLocked('a')]).toEqual([false, true]);
      await lock.unlock();
      await closed;
      expect(await store.isLocked('a')).toBe(false);
    });

    it('what is left of a lost reader is released that a nested call has renewed, as it wrote', async () => {
      const [wrote, ending] = [deferred(), deferred()];
      const work = async () => {
        await locks.withLock('a', () => undefined, { mode: 'write' });
        wrote.resolve();
        await ending.promise;
      };
      const reader = locks.withLock('a', () => jest.advanceTimersByTimeAsync(lease / 2).then(work), {
        mode: 'read',
        watchdog: false,
      });
      await wrote.promise;
      await jest.advanceTimersByTimeAsync(lease / 2);
      expect(await store.isLocked('a')).toBe(true);
      const closed = locks.close();
      await jest.advanceTimersByTimeAsync(1);
      await closed;
      expect(await store.isLocked('a')).toBe(false);
      ending.resolve();
      await expect(reader).rejects.toMatchObject({ reason: 'expired' });
    });

    it('the store is closed when a lock is released that its holder gives back at the end of the grace', async () => {
      const answer = deferred();
      const asked: string[] = [];
      store.afterRelease = async () => {
        await answer.promise;
        asked.push('released');
      };
      store.close = async () => void asked.push('closed');
      const patient = lockService(store, { lease, shutdownGrace: 100 });
      const work = patient.withLock('a', ({ signal }) => aborted(signal)).catch(({ reason }: LockLostError) => reason);
      await turn();
      const closed = patient.close();
      await jest.advanceTimersByTimeAsync(100);
      for (let turns = 0; turns < 10; turns++) await turn();
      answer.resolve();
      await closed;
      expect(asked).toEqual(['released', 'closed']);
      expect(await work).toBe('shutdown');
    });

    it.each<[string, LockOptions, (locks: Lock) => Promise<unknown>]>([
      ['its only key was taken', {}, () => store.forceRelease('a')],
      ['it expired without a watchdog', { watchdog: false }, () => jest.advanceTimersByTimeAsync(lease)],
      ['its "maxHold" was over', { maxHold: 800 }, () => jest.advanceTimersByTimeAsync(2 * lease)],
    ])('nothing waits for the work of a lost lock of which nothing is left: %s', async (_how, options, lose) => {
      const patient = lockService(store, { lease, shutdownGrace: '60s' });
      const lock = await patient.lock('a', options);
      await Promise.all([aborted(lock.signal), lose(lock)]);
      // No timer runs any more, so this ends at once or never.
      await patient.close();
    });
  });
});
