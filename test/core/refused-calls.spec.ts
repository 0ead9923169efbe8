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
  let [locks, others]: ClosableLockService[] = [];

  /** Takes many turns of the event loop to give up a wait, as a store that is far away. */
  class SlowToCancel extends MemoryLockStore {
    override async cancel(lock: Cancellation): Promise<void> {
      for (let turns = 0; turns < 20; turns++) await turn();
      await super.cancel(lock);
    }
  }

  beforeEach(() => {
    const store = new SlowToCancel();
    locks = lockService(store);
    others = lockService(store, { shutdownGrace: 0 });
  });

  afterEach(async () => {
    jest.useRealTimers();
    await Promise.all([locks!.close(), others!.close()]);
  });

  /** Resolves when a call of the service is refused, with how long that took, in ms. */
  async function refused(): Promise<number> {
    const startedAt = performance.now();
    await expect(locks!.lock('free')).rejects.toHaveProperty('code', 'LOCK_UNAVAILABLE');
    return performance.now() - startedAt;
  }

  it.each(['this service', 'another service'])(
    'work goes on to its end, though each of its calls is refused: in a lock of %s',
    async (whose) => {
      const outer = whose === 'this service' ? locks! : others!;
      let closing: Promise<void> | undefined;
      const job = outer.withLock('nightly', async () => {
        closing = locks!.close();
        // A moment for each would take longer than the grace, and than this test may.
        for (let item = 0; item < 100; item++) await refused();
        return 'done';
      });
      expect(await job).toBe('done');
      await closing;
    },
  );

  it('a worker that fetches the next job when one is refused fails few of them, also inside a lock', async () => {
    await locks!.withLock('leader', async () => {
      locks!.beforeApplicationShutdown();
      for (let jobs = 0; jobs < 100; jobs++) await refused();
      expect(await refused()).toBeGreaterThan(900);
    });
  });

  it.each<[string, () => ClosableLockService, string]>([
    ['each job enters the lock of the worker again', () => locks!, 'leader'],
    ['each job has a lock of its own, of another service', () => others!, 'job'],
  ])('a worker fails few jobs also if %s', async (_how, whose, key) => {
    await locks!.withLock('leader', async () => {
      locks!.beforeApplicationShutdown();
      await turn();
      for (let jobs = 0; jobs < 100; jobs++) await whose().withLock(key, refused);
      expect(await whose().withLock(key, refused)).toBeGreaterThan(900);
    });
  });

  it('work in a lock of its own goes on to its end beside a worker: both inside another lock', async () => {
    await locks!.withLock('leader', () =>
      locks!
        .withLock('invoices', async () => {
          locks!.beforeApplicationShutdown();
          for (let items = 0; items < 100; items++) await refused();
        })
        .then(async () => {
          for (let jobs = 0; jobs < 100; jobs++) await refused();
        }),
    );
  });

  it('a worker outside of locks fails few jobs also if each has a lock of another service', async () => {
    locks!.beforeApplicationShutdown();
    await turn();
    expect(await others!.withLock('job', refused)).toBeGreaterThan(900);
  });

  it('a worker that fetches the next job when one is refused fails few of them, also after the shutdown', async () => {
    locks!.beforeApplicationShutdown();
    expect(await refused()).toBeGreaterThan(900);
    await locks!.close();
    expect(await refused()).toBeGreaterThan(900);
  });

  it('a call that waits when the shutdown begins hears of it at once, also if its store is far away', async () => {
    await others!.lock('a');
    const held = await locks!.lock('b');
    const calls = [locks!.lock('a'), locks!.lock('a', { fair: true }), locks!.lock(['a', 'c']), locks!.lock('b')];
    const all = Promise.all(calls.map((call) => expect(call).rejects.toHaveProperty('code', 'LOCK_UNAVAILABLE')));
    await turn();
    const closing = locks!.close();
    const first = await Promise.race([refused().then(() => 'who comes'), all.then(() => 'who waits')]);
    expect(first).toBe('who waits');
    await held.unlock();
    await closing;
  });

  it('each refused call has heard of it when the last service has ended: Nest may end the process then', async () => {
    const held = await locks!.lock('a');
    const closing = locks!.close();
    let told = 0;
    const call = (): void => void refused().then(() => told++);
    for (let calls = 0; calls < 3; calls++) call();
    await held.unlock();
    await closing;
    expect(told).toBe(3);
    call();
    await others!.close();
    expect(told).toBe(4);
  });

  it('the signal of a call ends it at once', async () => {
    locks!.beforeApplicationShutdown();
    const stop = new AbortController();
    const call = locks!.lock('a', { signal: stop.signal });
    await turn();
    stop.abort(new Error('stopped'));
    await expect(call).rejects.toThrow('stopped');
  });

  it('a call settles also under the fake timers of a test', async () => {
    await locks!.close();
    jest.useFakeTimers();
    await refused();
  });
});
