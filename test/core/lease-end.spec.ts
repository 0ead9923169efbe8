import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('The signal of a lease that is not renewed', () => {
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
    'aborts before the end, %s: a timer may be late, and nobody is to see a lease that is over and a signal that is not',
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
});
