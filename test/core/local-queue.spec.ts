import { setTimeout as sleep } from 'node:timers/promises';
import { AsyncLocalStorage } from 'node:async_hooks';
import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { type Lock, LockTimeoutError, LockUnavailableError } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { healthOf } from '../../lib/core/store-health.js';
import { onAbort } from '../../lib/clock/on-abort.js';
import { aborted, deferred, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('Callers of one process', () => {
  let store: ScriptedStore;
  let locks: ClosableLockService;
  /** Of another process. */
  let other: ClosableLockService;

  beforeEach(() => {
    store = new ScriptedStore();
    locks = lockService(store, { lease: 1000, wait: 2000, shutdownGrace: 0 });
    other = lockService(store, { shutdownGrace: 0 });
  });

  afterEach(async () => {
    await locks.close();
    await other.close();
  });

  it('a caller that gives up names who holds the key by then, not who held it when it came', async () => {
    const held = await locks.lock('a');
    // A lock whose token somebody knows is not handed on inside the process.
    expect(held.token).toBeDefined();
    const timeouts = [1, 2].map(() => locks.lock('a', { wait: 500 }).catch((error: unknown) => error));
    await turn();
    const holder = 'elsewhere:7:abcdefghijklmnop.1';
    store.acquire = async () => ({ granted: false, holder, ahead: 0, fence: 1, leaseLeftMs: 60_000 });
    await held.unlock();
    for (const error of await Promise.all(timeouts)) expect(error).toMatchObject({ holder: 'elsewhere:7' });
  });

  it('a health check waits for the reply to one command', async () => {
    store.cancel = () => new Promise(() => undefined);
    expect(await healthOf(store)).toMatchObject({ isUp: true });
  });

  it('a health check of a quorum does not wait for a node that hangs when the others are a majority', async () => {
    const hangs = new ScriptedStore();
    const reply = deferred();
    hangs.afterAcquire = () => reply.promise;
    const nodes = [new MemoryLockStore(), hangs, new MemoryLockStore()];
    const health = await healthOf(Object.assign(new MemoryLockStore(), { nodes }));
    expect(health).toMatchObject({ isUp: true, up: 2, of: 3, errors: [{ code: 'LOCK_UNAVAILABLE' }] });
    reply.resolve();
    await until(() => hangs.asked.includes('cancel'));
  });

  it('a health check of a quorum waits for each node while those that have granted are no majority', async () => {
    const reply = deferred();
    const nodes = [1, 2].map(() => Object.assign(new ScriptedStore(), { afterAcquire: () => reply.promise }));
    const health = healthOf(Object.assign(new MemoryLockStore(), { nodes: [new MemoryLockStore(), ...nodes] }));
    await sleep(200); // longer than it waits behind a majority
    reply.resolve();
    expect(await health).toMatchObject({ isUp: true, up: 3, of: 3 });
  });

  it('a caller that gives up on one key leaves the other keys that it got', async () => {
    const b = await locks.lock('b');
    await expect(locks.lock(['a', 'b'], { wait: 20 })).rejects.toBeInstanceOf(LockTimeoutError);
    const controller = new AbortController();
    const aborted = expect(locks.lock(['a', 'b'], { signal: controller.signal })).rejects.toBe('enough');
    await turn();
    controller.abort('enough');
    await aborted;
    await expect(locks.withLock('a', () => 'mine', { wait: 0 })).resolves.toBe('mine');
    await b.unlock();
    await expect(locks.withLock(['a', 'b'], () => 'both', { wait: 0 })).resolves.toBe('both');
  });

  describe.each(Array.from({ length: 12 }, (_, steps) => steps))(
    'behind two callers that give up, the second %i steps after the first,',
    (steps) => {
      /** They are there when `behind` is asked for. */
      async function twoGiveUp(behind: () => Promise<Lock>): Promise<{ readonly last: Promise<Lock> }> {
        const [first, second] = [new AbortController(), new AbortController()];
        const gone = [first, second].map(({ signal }) =>
          locks.lock('a', { signal }).catch((reason: unknown) => reason),
        );
        const last = behind();
        await until(() => store.memory.waiters('a') === 1);
        first.abort('gone');
        for (let step = 0; step < steps; step++) await Promise.resolve();
        second.abort('gone');
        expect(await Promise.all(gone)).toEqual(['gone', 'gone']);
        return { last };
      }

      it('a caller behind two that gave up has the lease that it asked for', async () => {
        const held = await other.lock('a');
        const { last } = await twoGiveUp(() => locks.lock('a', { lease: '1m' }));
        await held.unlock();
        await last;
        expect((await store.inspect('a'))!.holders[0]!.leaseLeftMs).toBeGreaterThan(50_000);
      });

      it('a caller of several keys does not get the place that two others left on one of the keys', async () => {
        const [a, b] = [await other.lock('a'), await locks.lock('b')];
        const { last } = await twoGiveUp(() => locks.lock(['a', 'b']));
        await a.unlock();
        await turn();
        expect(await store.isLocked('a')).toBe(false);
        await b.unlock();
        await (await last).unlock();
      });
    },
  );

  describe('callers of several keys', () => {
    const free = async (key: string, options = {}) => (await locks.lock(key, { wait: 0, ...options })).unlock();

    it.each([[['a', 'b']], [['b', 'c']], [['a', 'b', 'c']]])(
      'a caller of the keys %j leaves those that nobody uses to others while it waits for another one',
      async (keys) => {
        const b = await locks.lock('b');
        const all = locks.lock(keys);
        await turn();
        for (const key of keys.filter((key) => key !== 'b')) {
          await free(key);
          await free(key, { wait: 50 });
          await free(key, { fair: true });
        }
        expect(await locks.tryLock('b')).toBeNull();
        await b.unlock();
        expect((await all).keys).toEqual(keys);
        expect(Object.isFrozen((await all).keys)).toBe(true);
        expect(await locks.tryLock(keys[0]!)).toBeNull();
        await (await all).unlock();
      },
    );

    it.each([[['b', 'c']], [['a', 'b', 'c']]])(
      'a caller of the keys %j leaves those that nobody uses to others while it waits for one in the store',
      async (keys) => {
        const b = await other.lock('b');
        const all = locks.lock(keys);
        await until(() => store.memory.waiters('b') === 1);
        for (const key of keys.slice(keys.indexOf('b') + 1)) {
          await free(key);
          await free(key, { wait: 50 });
          await locks.withLock('d', () => free(key, { wait: 50 }));
        }
        expect(await locks.tryLock('b')).toBeNull();
        await b.unlock();
        expect((await all).keys).toEqual(keys);
        for (const key of keys) expect(await locks.tryLock(key)).toBeNull();
        await (await all).unlock();
        for (const key of keys) await free(key);
      },
    );

    it('a caller of several keys leaves the others free also when the first one changes its holder', async () => {
      const a = await other.lock('a');
      const fair = locks.withLock('a', () => locks.withLock('b', () => 'both', { wait: 50 }), { fair: true });
      await until(() => store.memory.waiters('a') === 1);
      const all = locks.lock(['a', 'b']);
      await until(() => store.memory.waiters('a') === 2);
      await a.unlock();
      await expect(fair).resolves.toBe('both');
      await (await all).unlock();
    });

    it('of many callers of several keys one waits in the store, and the others behind it', async () => {
      const b = await other.lock('b');
      const all = Array.from({ length: 20 }, (_, at) => locks.withLock(['a', at % 2 ? 'b' : 'c'], () => turn()));
      await until(() => store.memory.waiters('b') === 1);
      for (let turns = 0; turns < 10; turns++) await turn();
      expect(store.memory.waiters('a') + store.memory.waiters('b')).toBe(1);
      await b.unlock();
      await Promise.all(all);
    });

    it('a caller of several keys gets in although others use the rest while it waits in the store', async () => {
      const b = await other.lock('b');
      let isIn = false;
      let used = 0;
      const use = async (key: string) => {
        for (; !isIn; used++) await locks.withLock(key, () => turn());
      };
      const all = locks.withLock(['b', 'c', 'd'], () => (isIn = true));
      await until(() => store.memory.waiters('b') === 1);
      const users = ['c', 'c', 'd', 'd'].map(use);
      await until(() => used > 8);
      await b.unlock();
      await Promise.all([all, ...users]);
    });

    it('a nested caller of several keys leaves those that nobody uses to its siblings', async () => {
      await locks.withLock(['a', 'b'], async () => {
        const b = await locks.lock('b');
        const all = locks.lock(['a', 'b']);
        await turn();
        await free('a');
        await b.unlock();
        await (await all).unlock();
      });
    });

    it('a caller of several keys gets in although others use each of them again and again', async () => {
      let isIn = false;
      const use = async (key: string) => {
        while (!isIn) await locks.withLock(key, () => turn());
      };
      const users = ['a', 'b', 'c'].flatMap((key) => [use(key), use(key)]);
      await turn();
      await locks.withLock(['a', 'b', 'c'], () => (isIn = true));
      await Promise.all(users);
    });

    it('callers of several keys never wait for each other, whatever keys they ask for', async () => {
      const sets = [['a', 'b'], ['b', 'c'], ['a', 'c'], ['c', 'b', 'a'], ['a'], ['b'], ['c']];
      const inside = new Set<string>();
      let sections = 0;
      const work = async (keys: string[]) => {
        expect(keys.filter((key) => inside.has(key))).toEqual([]);
        for (const key of keys) inside.add(key);
        await turn();
        for (const key of keys) inside.delete(key);
        sections++;
      };
      await Promise.all(
        Array.from({ length: 70 }, (_, at) =>
          locks.withLock(sets[at % sets.length]!, () => work(sets[at % sets.length]!)),
        ),
      );
      expect(sections).toBe(70);
    });
  });

  it('waiting callers are refused when the app closes, also if one just gets its turn', async () => {
    const first = await locks.lock('a', { wait: 0 });
    const next = locks.lock('a', { lease: 900, wait: Infinity });
    const theirs = other.lock('a', { fair: true });
    await until(() => store.memory.waiters('a') === 1);
    void first.unlock();
    locks.beforeApplicationShutdown();
    await expect(next).rejects.toHaveProperty('detail', expect.stringMatching('shutting down'));
    await (await theirs).unlock();
  });

  it('callers are refused when the app closes while they go from key to key', async () => {
    const [a, b] = [await locks.lock('a'), await locks.lock('b')];
    const both = locks.lock(['a', 'b'], { wait: Infinity });
    await turn();
    void a.unlock();
    locks.beforeApplicationShutdown();
    await expect(both).rejects.toHaveProperty('detail', expect.stringMatching('shutting down'));
    await b.unlock();
  });

  it('a caller does not rely on a lock that was taken away while the reply was under way', async () => {
    const answer = deferred();
    store.afterAcquire = () => answer.promise;
    const mine = locks.lock('a');
    await until(() => store.isLocked('a'));
    store.afterAcquire = async () => undefined;
    expect(await other.forceUnlock('a')).toBe(true);
    const theirs = await other.lock('a');
    answer.resolve();
    await until(() => store.memory.waiters('a') === 1);
    await theirs.unlock();
    expect((await mine).isHeld).toBe(true);
    expect((await store.inspect('a'))!.holders.map(({ token }) => token)).toEqual([(await mine).token]);
  });

  it('a caller that had some of its keys taken away, and got them again, keeps all of them', async () => {
    const b = await other.lock('b');
    const both = locks.lock(['a', 'b']);
    await until(() => store.memory.waiters('b') === 1);
    const next = other.lock('b', { fair: true });
    await until(() => store.memory.waiters('b') === 2);
    expect(await other.forceUnlock('a')).toBe(true);
    await b.unlock();
    const lock = await both;
    expect(store.memory.waiters('b')).toBe(1);
    await lock.unlock();
    await (await next).unlock();
  });

  it('a caller does not see why another caller gave up', async () => {
    const held = await other.lock('a');
    const controller = new AbortController();
    const first = locks.lock('a', { signal: controller.signal });
    const second = locks.lock('a');
    await until(() => store.memory.waiters('a') === 1);
    const outage = new LockUnavailableError('Another Redis is gone');
    controller.abort(outage);
    await expect(first).rejects.toBe(outage);
    await held.unlock();
    expect((await second).isHeld).toBe(true);
  });

  it('all callers hear of an outage at once, and none hears that the lock is held', async () => {
    const outage = deferred();
    store.afterAcquire = () => outage.promise;
    const calls = [
      locks.lock('a'),
      locks.lock('a'),
      locks.lock(['a', 'b']),
      locks.tryLock('a'),
      locks.lock('a', { wait: 0 }),
    ];
    await turn();
    outage.reject(new LockUnavailableError('Redis is gone'));
    const results = await Promise.allSettled(calls);
    expect(results.map((result) => (result as PromiseRejectedResult).reason as unknown)).toEqual(
      calls.map(() => expect.any(LockUnavailableError)),
    );
    store.afterAcquire = async () => undefined;
    await store.forceRelease('a');
    await expect(locks.withLock(['a', 'b'], () => 'works again', { wait: 0 })).resolves.toBe('works again');
  });

  it('an outage that met a caller of more keys fails no caller of fewer: it may concern only those', async () => {
    const outage = deferred();
    store.afterAcquire = () => outage.promise;
    const [both, ...same] = [locks.lock(['a', 'b']), locks.lock(['a', 'b', 'c']), locks.tryLock(['b', 'a'])];
    const others = [locks.withLock('a', () => 'a'), locks.tryLock('b').then((lock) => lock?.key)];
    await turn();
    store.afterAcquire = async () => undefined;
    outage.reject(new LockUnavailableError('The node of b is gone'));
    await store.cancel({
      keys: ['a', 'b'],
      token: (await store.inspect('a'))!.holders[0]!.token,
      leaseMs: 1,
      sharing: 'exclusive',
      label: undefined,
    });
    for (const call of [both, ...same]) await expect(call).rejects.toThrow(LockUnavailableError);
    expect(await Promise.all(others)).toEqual(['a', 'b']);
  });

  it('a caller that tries once behind one that is just asking gets its result from that reply', async () => {
    const first = locks.lock('a');
    await expect(locks.tryLock('a')).resolves.toBeNull();
    await (await first).unlock();
    const failing = locks.lock('a', { signal: AbortSignal.timeout(1000) });
    await (await failing).unlock();
    await expect(locks.tryLock('a')).resolves.not.toBeNull();
  });

  it.each(['', ', nested in a call that has the keys'])(
    'a caller that tries once is refused at once, though the one ahead waits for another key%s',
    async (nested) => {
      const tryBehind = async () => {
        const first = await locks.lock('b');
        const both = locks.lock(['a', 'b']);
        await turn();
        const a = await locks.lock('a');
        await first.unlock();
        const b = await locks.lock('b');
        await a.unlock();
        await turn();
        const answer = await Promise.race([
          locks.tryLock('a'),
          turn()
            .then(turn)
            .then(() => 'late'),
        ]);
        await b.unlock();
        await (await both).unlock();
        expect(answer).toBeNull();
      };
      await (nested ? locks.withLock(['a', 'b'], tryBehind) : tryBehind());
    },
  );

  it('a caller that tries once can be aborted, also while the one ahead is just asking', async () => {
    const answer = deferred();
    store.afterAcquire = () => answer.promise;
    const first = locks.lock('a');
    const controller = new AbortController();
    const trying = locks.tryLock('a', { signal: controller.signal });
    controller.abort('enough');
    await expect(trying).rejects.toBe('enough');
    answer.resolve();
    await (await first).unlock();
  });

  it('the other keys of a lock are freed when one of them is lost', async () => {
    const lock = await locks.lock(['a', 'b'], { lease: 900 });
    await store.forceRelease('b');
    await aborted(lock.signal);
    expect(await store.isLocked('a')).toBe(true);
    expect(await lock.unlock()).toBe(false);
    await turn();
    expect(await store.isLocked('a')).toBe(false);
    await expect(locks.withLock(['a', 'b'], () => 'free', { wait: 0 })).resolves.toBe('free');
  });

  it('a nested caller behind a sibling goes on by itself when the parent call ends', async () => {
    const sibling = deferred();
    let nested: Promise<unknown> | undefined;
    await locks.withLock('a', async () => {
      void locks.withLock('a', () => sibling.promise).catch(() => undefined);
      nested = Promise.all([1, 2, 3].map((number) => locks.withLock('a', () => number)));
      await turn();
    });
    await expect(nested).resolves.toEqual([1, 2, 3]);
    sibling.resolve();
  });

  it('calls may still nest while the app waits for them to end', async () => {
    const service = lockService(store, { shutdownGrace: '5s' });
    const closing = deferred();
    const work = service.withLock('a', async () => {
      await closing.promise;
      return Promise.all([service.withLock('a', () => 1), service.withLock('a', () => 2)]);
    });
    await turn();
    const closed = service.close();
    closing.resolve();
    await expect(work).resolves.toEqual([1, 2]);
    await closed;
  });

  it('a caller that unlocked early is inside of nothing any more', async () => {
    await locks.withLock('a', async (lock) => {
      expect(locks.current()).toBe(lock);
      await lock.unlock();
      expect(locks.current()).toBeUndefined();
      await expect(locks.withLock('a', (again) => again.fence > lock.fence, { wait: 0 })).resolves.toBe(true);
    });
  });

  it('callers are not blocked for ever by a store that throws instead of rejecting', async () => {
    const lock = await locks.lock('a');
    store.release = () => {
      throw new Error('not even a promise');
    };
    await lock.unlock();
    await store.forceRelease('a');
    await expect(locks.lock('a', { wait: 0 })).resolves.toMatchObject({ key: 'a' });
  });

  it('a time-out names the holder also when that is the own process', async () => {
    await locks.lock('a');
    await expect(locks.lock('a', { wait: 0 })).rejects.toMatchObject({
      holder: expect.stringMatching(new RegExp(`:${process.pid}$`)) as unknown,
    });
  });

  it('a lock that is handed off reaches its caller after one promise', async () => {
    const first = await locks.lock('a');
    let isInside = false;
    const second = locks.withLock('a', () => void (isInside = true));
    await turn();
    const unlocking = first.unlock();
    await Promise.resolve();
    expect(isInside).toBe(true);
    await unlocking;
    await second;
  });

  it.each([false, true])(
    'a lock that the store hands over reaches its caller after 4 promises (fair: %s)',
    async (fair) => {
      let promises = 0;
      let isInside = false;
      const memory = new MemoryLockStore();
      const listen = memory.listen.bind(memory);
      memory.listen = (listener) => {
        const count = async (): Promise<void> => {
          for (; !isInside && promises < 20; promises++) await Promise.resolve();
        };
        listen({ ...listener, granted: (...grant) => [listener.granted(...grant), void count()][0]! });
      };
      const [here, there] = [lockService(memory, { shutdownGrace: 0 }), lockService(memory, { shutdownGrace: 0 })];
      const first = await there.lock('a');
      const second = here.withLock('a', () => void (isInside = true), { fair });
      await turn();
      await first.unlock();
      await second;
      await Promise.all([here.close(), there.close()]);
      expect(promises).toBeLessThanOrEqual(4);
    },
  );

  it('a caller that gets its turn asks the store in its own async context', async () => {
    const callers = new AsyncLocalStorage<string>();
    const askedBy: (string | undefined)[] = [];
    store.afterAcquire = async () => void askedBy.push(callers.getStore());
    const first = await callers.run('first', () => locks.lock('a', { watchdog: false }));
    // Another lease, so that the lock is not handed off.
    const second = callers.run('second', () => locks.lock('a', { lease: 900 }));
    await turn();
    await callers.run('first', () => first.unlock());
    await (await second).unlock();
    expect(askedBy).toEqual(['first', 'second']);
  });

  it('a callback of a signal is not called when another one has removed it', () => {
    const controller = new AbortController();
    const called: string[] = [];
    onAbort(controller.signal, () => (called.push('first'), removeSecond()));
    const removeSecond = onAbort(controller.signal, () => called.push('second'));
    controller.abort();
    expect(called).toEqual(['first']);
  });
});
