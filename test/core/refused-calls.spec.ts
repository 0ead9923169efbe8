import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { type Cancellation, LockTimeoutError, LockUnavailableError } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { turn } from '../support/deferred.js';
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

describe('Calls that come while the service shuts down', () => {
  let store: SlowToCancel;
  let [locks, others]: ClosableLockService[] = [];

  /** Takes many turns of the event loop to give up a wait, as a store that is far away. */
  class SlowToCancel extends MemoryLockStore {
    override async cancel(lock: Cancellation): Promise<void> {
      for (let turns = 0; turns < 20; turns++) await turn();
      await super.cancel(lock);
    }
  }

  // No time passes, unless a test says so.
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['setImmediate', 'nextTick', 'queueMicrotask'] });
    store = new SlowToCancel();
    locks = lockService(store);
    others = lockService(store, { shutdownGrace: 0 });
  });

  afterEach(async () => {
    jest.useRealTimers();
    await Promise.all([locks!.close(), others!.close()]);
  });

  /** How a call has ended after some turns of the event loop. */
  async function stateOf(call: Promise<unknown>): Promise<unknown> {
    let state: unknown = 'waits';
    call.then(
      () => (state = 'entered'),
      (error: { code?: string }) => (state = error.code ?? error),
    );
    for (let turns = 0; turns < 50; turns++) await turn();
    return state;
  }

  it.each(['this service', 'another service'])(
    'work goes on to its end, though each of its calls is refused: in a lock of %s',
    async (whose) => {
      const outer = whose === 'this service' ? locks! : others!;
      let closing: Promise<void> | undefined;
      const job = outer.withLock('nightly', async () => {
        closing = locks!.close();
        let failed = 0;
        for (let item = 0; item < 100; item++) await locks!.lock(`item:${item}`).catch(() => failed++);
        return failed;
      });
      expect(await job).toBe(100);
      await closing;
    },
  );

  it('a call that waits when the shutdown begins hears of it at once, also if its store is far away', async () => {
    await others!.lock('a');
    const held = await locks!.lock('b');
    const waiting = [locks!.lock('a'), locks!.lock('a', { fair: true }), locks!.lock(['a', 'c']), locks!.lock('b')];
    const states = waiting.map(stateOf);
    await turn();
    const closing = locks!.close();
    expect(await Promise.all(states)).toEqual(waiting.map(() => 'LOCK_UNAVAILABLE'));
    await held.unlock();
    await closing;
  });

  it('a worker that fetches the next job when one is refused fails few of them, also after the shutdown', async () => {
    const held = await locks!.lock('a');
    const closing = locks!.close();
    const first = locks!.lock('b');
    expect(await stateOf(first)).toBe('waits');
    jest.advanceTimersByTime(1000);
    expect(await stateOf(first)).toBe('LOCK_UNAVAILABLE');
    await held.unlock();
    await closing;
    const last = locks!.lock('b');
    expect(await stateOf(last)).toBe('waits');
    jest.advanceTimersByTime(1000);
    expect(await stateOf(last)).toBe('LOCK_UNAVAILABLE');
  });

  it('each refused call has heard of it when the service has ended: Nest may end the process then', async () => {
    const held = await locks!.lock('a');
    const closing = locks!.close();
    let told = 0;
    for (let calls = 0; calls < 3; calls++) locks!.lock('b').catch(() => told++);
    await held.unlock();
    await closing;
    expect(told).toBe(3);
  });

  it('the signal of a call ends it at once', async () => {
    locks!.beforeApplicationShutdown();
    const stop = new AbortController();
    const call = locks!.lock('a', { signal: stop.signal });
    await turn();
    stop.abort('stopped');
    expect(await stateOf(call)).toBe('stopped');
  });
});
