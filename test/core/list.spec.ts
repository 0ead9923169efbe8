import { afterEach, describe, expect, it, jest } from '@jest/globals';
import { type Lock, LockOptionsError, type LockStore } from 'nest-redis-lock';
import { MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';
import { MOST_NAMED } from '../../lib/core/list/list-question.js';
import { LONGEST_ANSWER } from '../../lib/store/process-question.js';
import { until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ofAnotherProcess } from '../support/stores/other-process.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

describe('Lists of locks', () => {
  const services: ClosableLockService[] = [];

  function service(store: LockStore): ClosableLockService {
    const made = lockService(store, { shutdownGrace: 0, wait: '20s' });
    services.push(made);
    return made;
  }

  afterEach(() => Promise.all(services.splice(0).map((one) => one.close())));

  it('a process with 10,000 locks answers in messages of a bounded length, and no more of them than asked for', async () => {
    const store = new MemoryLockStore();
    const [asker, holder] = [service(store), service(store)];
    const names = Array.from({ length: 10_000 }, (_, number) => `account:${'"'.repeat(100)}:${number}`);
    await Promise.all(names.map((key) => holder.lock(key, { lease: '1h', label: 'a'.repeat(100) })));
    const asked = jest.spyOn(store, 'askProcess');
    const lengths = async () => {
      const replies = await Promise.all(
        asked.mock.results.map(({ value }) => value as ReturnType<typeof store.askProcess>),
      );
      asked.mockClear();
      return replies.map((reply) => JSON.stringify((reply as { answer: unknown }).answer).length);
    };
    const some = await asker.list({ limit: 10 });
    expect(some).toMatchObject({ locks: { length: 10 }, total: 10_000, unreached: [] });
    expect(Math.max(...(await lengths()))).toBeLessThan(10_000);

    const most = await asker.list();
    expect(most).toMatchObject({ locks: { length: 1_000 }, total: 10_000 });
    expect(Math.max(...(await lengths()))).toBeLessThanOrEqual(LONGEST_ANSWER);

    const all = await asker.list({ limit: 100_000 });
    expect(all.total).toBe(10_000);
    expect(all.locks.map(({ key }) => key).sort()).toEqual([...names].sort());
    expect(Math.max(...(await lengths()))).toBeLessThanOrEqual(LONGEST_ANSWER);
  });

  it('of a key with many holders and waiters of long names, some are named and all are counted', async () => {
    const store = new MemoryLockStore();
    const [asker, other] = [service(store), service(store)];
    const abort = new AbortController();
    const label = (number: number) => `${number}${'\u0001'.repeat(90)}`;
    for (let number = 0; number < 50; number++)
      await other.lock('k'.repeat(1024), { permits: 50, label: label(number) });
    const waiting = Array.from({ length: 50 }, (_, number) =>
      other.lock('k'.repeat(1024), { permits: 50, label: label(number), signal: abort.signal }).catch(() => undefined),
    );
    await until(async () => (await asker.list()).locks[0]!.waiterCount === 50);
    const [listed] = (await asker.list()).locks;
    expect(listed!.holderCount).toBe(50);
    expect(listed!.holders).toHaveLength(MOST_NAMED);
    expect(listed!.waiters).toHaveLength(MOST_NAMED);
    abort.abort();
    await Promise.all(waiting);
  });

  it('a key that is old for one process is listed with what is young for another', async () => {
    const store = new MemoryLockStore();
    const [here, there] = [service(store), service(store)];
    /** Hands the key on while both processes wait: on a busy machine, it may be the turn of the other one. */
    const handOn = async () => {
      const first = await here.lock('a');
      const second = here.lock('a', { label: 'second' });
      const third = there.lock('a');
      await until(async () => (await here.list()).locks[0]!.waiterCount === 2);
      const waitedSince = Date.now();
      await until(() => Date.now() > waitedSince + 50);
      await first.unlock();
      const isSecond = await Promise.race([second.then(() => true), third.then(() => false)]);
      return { isSecond, inOrder: isSecond ? [second, third] : [third, second] };
    };
    const release = async (inOrder: readonly Promise<Lock>[]) => {
      for (const lock of inOrder) await (await lock).unlock();
    };
    let { isSecond, inOrder } = await handOn();
    while (!isSecond) {
      await release(inOrder);
      ({ isSecond, inOrder } = await handOn());
    }
    const { locks } = await here.list({ olderThan: 50 });
    expect(locks).toMatchObject([{ key: 'a', holders: [{ label: 'second' }], waiters: [{ callers: 1 }] }]);
    expect(locks[0]!.holders[0]!.heldMs).toBeLessThan(locks[0]!.waiters[0]!.waitedMs);
    await release(inOrder);
  });

  it('a key is listed with the time that it is held, also when the clock is set meanwhile', async () => {
    const here = service(new MemoryLockStore());
    try {
      for (const stepMs of [-3_600_000, 3_600_000]) {
        await using lock = await here.lock('a');
        const set = lock.acquiredAt.getTime() + stepMs;
        jest.spyOn(Date, 'now').mockReturnValue(set);
        const { total, locks } = await here.list();
        expect([total, locks[0]?.holders[0]?.since]).toEqual([1, lock.acquiredAt]);
        expect(locks[0]!.holders[0]!.heldMs).toBeLessThan(60_000);
        expect((await here.list({ olderThan: '10m' })).total).toBe(0);
        jest.restoreAllMocks();
      }
    } finally {
      jest.restoreAllMocks();
    }
  });

  it('a key that no process says to hold is listed with what the store knows, while somebody waits for it', async () => {
    const store = new MemoryLockStore();
    const locks = service(store);
    await store.acquire(ofAnotherProcess('a'));
    expect((await locks.list()).locks).toEqual([]);
    const abort = new AbortController();
    const waiting = locks.lock('a', { signal: abort.signal, label: 'payout' }).catch(() => undefined);
    await until(async () => (await locks.list()).locks.length === 1);
    const { locks: listed } = await locks.list();
    expect(listed).toMatchObject([
      {
        key: 'a',
        mode: 'exclusive',
        holders: [
          { token: 'of another process', host: undefined, fence: undefined, since: undefined, heldMs: undefined },
        ],
        holderCount: 1,
        waiters: [{ label: 'payout', callers: 1, pid: process.pid }],
      },
    ]);
    expect(listed[0]!.holders[0]!.remaining).toBeGreaterThan(0);
    abort.abort();
    await waiting;
  });

  it('a process that gets a key after it has answered, and before the store is asked, is not listed as one that nobody claims', async () => {
    const store = new MemoryLockStore();
    const [here, there] = [service(store), service(store)];
    const other = ofAnotherProcess('a');
    await store.acquire(other);
    const next = there.lock('a', { label: 'next', mode: 'write' });
    await until(async () => (await here.list()).locks[0]?.waiterCount === 1);
    const reader = here.lock('a', { mode: 'read' });
    await until(async () => (await here.list()).locks[0]!.waiterCount === 2);

    const inspect = store.inspect.bind(store);
    jest.spyOn(store, 'inspect').mockImplementationOnce(async (key) => {
      await store.release(other);
      await next;
      return inspect(key);
    });
    const { locks: between, unreached } = await here.list();
    expect(unreached).toEqual([]);
    expect(between).toMatchObject([{ key: 'a', holders: [], holderCount: 0, waiterCount: 2 }]);

    const { locks } = await here.list();
    expect(locks).toMatchObject([
      { key: 'a', holders: [{ label: 'next', fence: (await next).fence }], holderCount: 1, waiterCount: 1 },
    ]);
    await (await next).unlock();
    await (await reader).unlock();
  });

  it('a key between two holders is listed as its first waiter wants it, whoever gets it meanwhile', async () => {
    const store = new MemoryLockStore();
    const [here, there] = [service(store), service(store)];
    const other = ofAnotherProcess('a');
    await store.acquire(other);
    const reader = here.lock('a', { mode: 'read' });
    await until(async () => (await here.list()).locks[0]?.waiterCount === 1);
    const inspect = store.inspect.bind(store);
    const writer = { ...other, token: `${there.processes.own}.1` };
    jest.spyOn(store, 'inspect').mockImplementationOnce(async (key) => {
      await store.release(other);
      await (await reader).unlock();
      await store.acquire(writer);
      return inspect(key);
    });
    expect((await here.list()).locks).toMatchObject([{ key: 'a', mode: 'read', holders: [], waiterCount: 1 }]);
  });

  it('a process that stalls between two questions of one list is listed with what the store says that it holds', async () => {
    const store = new MemoryLockStore();
    const [here, there] = [service(store), service(store)];
    await there.lock('a');
    const abort = new AbortController();
    const waiting = here.lock('a', { signal: abort.signal }).catch(() => undefined);
    await until(async () => ((await here.list()).locks[0]?.waiters[0]?.waitedMs ?? 0) > 20);
    jest
      .spyOn(store, 'askProcess')
      // As if it had held the key for too short a time to name it.
      .mockResolvedValueOnce({ answer: { keys: [], total: 0 } })
      .mockResolvedValueOnce('silent');
    const { locks, unreached } = await here.list({ olderThan: 20 });
    expect(unreached).toMatchObject([{ what: 'process', reason: 'silent' }]);
    expect(locks).toMatchObject([
      {
        key: 'a',
        holders: [{ instance: there.processes.own.split(':').at(-1), fence: undefined, heldMs: undefined }],
        waiterCount: 1,
      },
    ]);
    abort.abort();
    await waiting;
  });

  it('a caller of several keys is listed with each of them, and one that gave up with none', async () => {
    const store = new MemoryLockStore();
    const [here, there] = [service(store), service(store)];
    const held = await here.lock(['a', 'b']);
    const waiting = there.tryLock(['a', 'b', 'c'], { wait: 100 });
    await until(async () => (await here.list()).locks.length === 3);
    const waiters = async () => (await here.list()).locks.map(({ key, waiterCount }) => [key, waiterCount]).sort();
    expect(await waiters()).toEqual(['a', 'b', 'c'].map((key) => [key, 1]));
    expect(await waiting).toBeNull();
    expect(await waiters()).toEqual([
      ['a', 0],
      ['b', 0],
    ]);
    await held.unlock();
  });

  it('with a store of the app that knows no processes, the list has the locks of this one, and says so', async () => {
    const locks = service(new ScriptedStore());
    await locks.lock('a');
    expect(await locks.list()).toMatchObject({
      locks: [{ key: 'a' }],
      total: 1,
      unreached: [{ what: 'server', reason: 'unsupported' }],
    });
  });

  it('the service of a test lists its locks, also while it simulates that its store is down', async () => {
    const locks = new TestLockService();
    await locks.withLock('a', async () => {
      expect(await locks.list()).toMatchObject({ locks: [{ key: 'a' }], unreached: [] });
      locks.simulate({ down: true });
      expect(await locks.list()).toMatchObject({ locks: [{ key: 'a' }], unreached: [{ reason: 'unavailable' }] });
      locks.reset();
    });
  });

  it('what a stranger answers is checked: no field of another type gets into the list, and it always ends', async () => {
    const store = new MemoryLockStore();
    const locks = service(store);
    const stranger = service(store);
    const own = { key: 'a', sharing: 'exclusive', holders: [], holderCount: 1, waiters: [], waiterCount: 0 };
    const holder = { fence: 1, since: 1, ageMs: 1, remainingMs: 1 };
    const answers: [unknown, object | 'refused'][] = [
      ['keys', 'refused'],
      [{}, 'refused'],
      [{ keys: {}, total: 1 }, 'refused'],
      [{ keys: [], total: '1' }, 'refused'],
      [{ keys: [], total: -1 }, 'refused'],
      [{ keys: [null, 1, 'a', {}, { ...own, key: 1 }, { ...own, key: '' }], total: 6 }, []],
      [
        {
          keys: [
            { ...own, key: 'k'.repeat(1025) },
            { ...own, sharing: 'permits:0' },
          ],
          total: 2,
        },
        [],
      ],
      [
        { keys: [{ ...own, holders: 'x', waiters: { length: 1 } }], total: 1 },
        [{ key: 'a', holders: [], waiters: [] }],
      ],
      [
        {
          keys: [
            {
              ...own,
              holders: [
                { ...holder, fence: '1' },
                { ...holder, since: 9e15 },
              ],
            },
          ],
          total: 1,
        },
        [{ holders: [] }],
      ],
      [
        {
          keys: [
            {
              ...own,
              holders: [
                { ...holder, ageMs: -1 },
                { ...holder, ageMs: null },
              ],
            },
          ],
          total: 1,
        },
        [{ holders: [] }],
      ],
      [{ keys: [{ ...own, holders: Array(1000).fill(holder) }], total: 1 }, [{ holders: { length: MOST_NAMED } }]],
      [
        { keys: [{ ...own, holders: [{ ...holder, label: { toString: 1 }, traceparent: 'x' }] }], total: 1 },
        [{ holders: [{ label: undefined, traceparent: undefined }] }],
      ],
      [{ keys: [{ ...own, waiters: [{ ...holder, sharing: 'x', callers: 1 }] }], total: 1 }, [{ waiters: [] }]],
      [{ keys: [own], total: 5, next: [1, 'a'] }, [{ key: 'a' }]],
      [{ keys: [], total: 5, next: [1, 'a'] }, []],
    ];
    for (const [answer, expected] of answers) {
      stranger.processes.on('locks', () => answer);
      const { locks: listed, unreached } = await locks.list({ limit: 3 });
      expect(unreached).toMatchObject(expected === 'refused' ? [{ what: 'process', reason: 'unsupported' }] : []);
      expect(listed).toMatchObject(expected === 'refused' ? [] : expected);
    }
  });

  it('a process answers no question that is none', async () => {
    const store = new MemoryLockStore();
    const [locks, other] = [service(store), service(store)];
    await other.lock('a');
    const [source] = (await other.processes.find()).sources;
    const question = { match: '*', olderThanMs: 0, limit: 10 };
    const ask = (about: unknown) => locks.processes.ask(source!, { kind: 'locks', about });
    for (const about of [
      undefined,
      null,
      'locks',
      {},
      { ...question, match: 1 },
      { ...question, match: '*'.repeat(1025) },
      { ...question, limit: 0 },
      { ...question, limit: 1.5 },
      { ...question, olderThanMs: '0' },
    ])
      expect(await ask(about)).toEqual({ answer: undefined });
    expect(await ask({ ...question, keys: 'a', after: 'b' })).toMatchObject({ answer: { keys: [], total: 0 } });
    expect(await ask({ ...question, keys: [1, 'a'], after: [1] })).toMatchObject({ answer: { keys: [{ key: 'a' }] } });
  });

  it.each([
    [null, /list\(\) takes an object of options, not null/],
    [['a'], /list\(\) takes an object of options/],
    [{ pattern: '*' }, /There is no option "pattern".*Known options: match, olderThan, limit/],
    [{ macth: '*' }, /Did you mean "match"\?/],
    [{ match: '' }, /"match" is "", but must be a pattern of 1 to 1024 characters/],
    [{ match: /a/ }, /"match" is .*, but must be a pattern/],
    [{ limit: 0 }, /"limit" is 0, but must be a whole number from 1 to 100000/],
    [{ limit: 1e6 }, /"limit" is 1000000, but must be/],
    [{ olderThan: 'soon' }, /"olderThan" is "soon", but must be a duration of at least 0 ms/],
  ])('the option %j is refused with a remedy', async (options, message) => {
    const refused = service(new MemoryLockStore()).list(options as object);
    await expect(refused).rejects.toThrow(LockOptionsError);
    await expect(refused).rejects.toThrow(message);
  });
});
