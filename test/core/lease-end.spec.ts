import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
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
});
