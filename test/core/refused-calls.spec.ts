import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockTimeoutError, LockUnavailableError } from 'nest-redis-lock';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

/** More tries than a caller makes in some turns of the event loop, few enough to end. */
const MANY = 20_000;

describe('Refused calls', () => {
  let store: ScriptedStore;
  let locks: ClosableLockService;

  beforeEach(() => {
    store = new ScriptedStore();
    locks = lockService(store, { shutdownGrace: 0 });
  });

  afterEach(() => locks.close());

  it.each<[string, () => Promise<unknown>, new () => object]>([
    ['tryLock() while this process is inside', () => locks.tryLock('a'), Object],
    ['maxWaiters: 0 while this process is inside', () => locks.lock('a', { maxWaiters: 0 }), LockTimeoutError as never],
    ['a shutdown', () => closing().lock('b'), LockUnavailableError as never],
  ])(
    'a caller that tries again at once leaves time for timers when this process alone refuses it: %s',
    async (_what, call, error) => {
      await locks.lock('a');
      let [isTimeUp, tries] = [false, 0];
      // The timer itself is under test: the caller must let it run.
      setTimeout(() => (isTimeUp = true), 5);
      for (; !isTimeUp && tries < MANY; tries++) {
        const answer: unknown = await call().catch((refused: unknown) => refused);
        if (answer !== null) expect(answer).toBeInstanceOf(error);
      }
      expect(isTimeUp).toBe(true);
    },
  );

  it.each([undefined, Promise.resolve('running')])(
    'withLock() says so when its work is no function, and asks for nothing: %p',
    async (work) => {
      const call = locks.withLock('a', work as unknown as () => void);
      await expect(call).rejects.toMatchObject({
        code: 'LOCK_OPTIONS_INVALID',
        detail: expect.stringMatching(/^The work of withLock\(\) is .*, but must be a function/),
      });
      expect(await locks.isLocked('a')).toBe(false);
    },
  );

  const closing = (): ClosableLockService => {
    locks.beforeApplicationShutdown();
    return locks;
  };
});

describe('Calls whose token is spent', () => {
  it('a caller that the store tells to ask again is refused when the app shuts down meanwhile', async () => {
    const store = new ScriptedStore();
    const [here, there] = [lockService(store, { shutdownGrace: 0 }), lockService(store, { shutdownGrace: 0 })];
    const lock = await there.lock('a');
    const acquire = store.acquire.bind(store);
    let isFirst = true;
    store.acquire = async (command) => {
      const answer = await acquire(command);
      if (answer.granted || !isFirst) return answer;
      isFirst = false;
      here.beforeApplicationShutdown();
      await store.cancel(command);
      return { ...answer, spent: true };
    };
    await expect(here.lock('a')).rejects.toBeInstanceOf(LockUnavailableError);
    await here.close();
    await lock.unlock();
    await there.close();
  });
});

describe('Nested calls that go on', () => {
  it('a lock ends those nested in it before the next caller can acquire it', async () => {
    const store = new ScriptedStore();
    const locks = lockService(store, { shutdownGrace: 0 });
    let nested!: AbortSignal;
    const released: boolean[] = [];
    const release = store.release.bind(store);
    store.release = (...lock) => {
      released.push(nested.aborted);
      return release(...lock);
    };
    const going = locks.lock('a').then(async (outer) => {
      const inner = await locks.goOn({ lock: outer, ended: Promise.resolve() }, () => locks.lock('a'));
      nested = inner.signal;
      nested.addEventListener('abort', () => void outer.unlock());
      return outer;
    });
    const outer = await going;
    expect(await outer.unlock()).toBe(true);
    expect(await outer.unlock()).toBe(true);
    expect(released).toEqual([true]);
    await locks.close();
  });
});
