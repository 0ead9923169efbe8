import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import type { Lock, LockTimeoutError } from 'nest-redis-lock';
import { MemoryLockStore, TestLockService } from 'nest-redis-lock/testing';
import { aborted, deferred, turn } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

describe('Errors inside the work of another lock', () => {
  let here: ClosableLockService;
  let there: ClosableLockService;

  beforeEach(() => {
    const store = new MemoryLockStore();
    [here, there] = [lockService(store, { shutdownGrace: 0 }), lockService(store, { shutdownGrace: 0 })];
  });

  afterEach(() => Promise.all([here.close(), there.close()]));

  it('a nested error says which locks its call holds, where two processes wait for each other', async () => {
    const [first, second] = [deferred(), deferred()];
    const other = there.withLock(
      'b',
      () => (first.resolve(), second.promise.then(() => there.withLock('a', turn, { wait: '20s' }))),
    );
    const error = (await here
      .withLock(['a', 'c'], () => first.promise.then(() => (second.resolve(), here.withLock('b', turn, { wait: 60 }))))
      .catch((error: unknown) => error)) as LockTimeoutError;
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', keys: ['b'], holding: ['a', 'c'], isDeadlock: false });
    expect(error.detail).toContain(
      'This call holds locks "a", "c" meanwhile: if the holder waits for that, neither goes on. ' +
        'Take these keys together',
    );
    expect(error.message).not.toMatch(/"/);
    await other;
  });

  it('a nested call that is refused because too many wait says how long it waited, however long it may', async () => {
    await here.withLock('a', async () => {
      const release = deferred();
      const first = here.withLock('a', () => release.promise);
      await turn();
      await expect(here.lock('a', { wait: Infinity, maxWaiters: 0 })).rejects.toHaveProperty(
        'waitedMs',
        expect.closeTo(0, -3),
      );
      release.resolve();
      await first;
    });
  });

  it('a nested error is not retryable, has no retryAfter, and says that work may be half done', async () => {
    await there.lock('b');
    await expect(here.lock('b', { wait: 0 })).rejects.toMatchObject({ retryable: true, retryAfter: 1, holding: [] });
    const error = (await here
      .withLock('a', () => here.lock('b', { wait: 0 }))
      .catch((error: unknown) => error)) as LockTimeoutError;
    expect(error).toMatchObject({
      retryable: false,
      retryAfter: undefined,
      holding: ['a'],
      message: expect.stringContaining('part of the work may be done'),
    });
    expect(error.getResponse()).toEqual({
      statusCode: 409,
      code: 'LOCK_TIMEOUT',
      message: error.message,
      error: 'Conflict',
      retryable: false,
    });
  });

  it.each([
    ['was lost', () => there.forceUnlock('a')],
    ['was given back before its work ended', () => here.current('a')!.unlock()],
  ])('a nested error is not retryable when the outer lock %s', async (_what, end) => {
    await there.lock('b');
    const work = async () => {
      await end();
      await here.lock('b', { wait: 20 });
    };
    const error = await here.withLock('a', work, { onLost: 'ignore' }).catch((error: unknown) => error);
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', retryable: false, retryAfter: undefined, holding: [] });
  });

  it('a nested error in an outage is not retryable', async () => {
    const locks = new TestLockService();
    const cause = await locks
      .withLock('a', () => (locks.simulate({ down: true }), locks.lock('b')))
      .catch((error: unknown) => error);
    expect(cause).toMatchObject({
      code: 'LOCK_UNAVAILABLE',
      retryable: false,
      detail: expect.stringContaining('simulates'),
      message: expect.stringContaining('may be done'),
    });
    await expect(locks.lock('b')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', retryable: true });
  });

  it('what the work of a lock asks in an outage is not retryable', async () => {
    const locks = new TestLockService();
    const asks: ((lock: Lock) => Promise<unknown>)[] = [
      (lock) => lock.extend(),
      (lock) => lock.downgrade(),
      () => locks.isLocked('b'),
      () => locks.inspect('b'),
      () => locks.forceUnlock('b'),
    ];
    for (const ask of asks) {
      const work = (lock: Lock): Promise<unknown> => (locks.simulate({ down: true }), ask(lock));
      const error: unknown = await locks.withLock('a', work, { lease: '20s' }).catch((error: unknown) => error);
      expect([String(ask), error]).toEqual([
        String(ask),
        expect.objectContaining({ code: 'LOCK_UNAVAILABLE', retryable: false }),
      ]);
      locks.simulate({ down: false });
    }
    locks.simulate({ down: true });
    await expect(locks.isLocked('b')).rejects.toMatchObject({ code: 'LOCK_UNAVAILABLE', retryable: true });
  });

  it('a nested error of siblings does not name the key that they wait for themselves', async () => {
    const error = (await here
      .withLock('a', async () => {
        const sibling = await here.lock('a');
        return here.lock('a', { wait: 20 }).finally(() => sibling.unlock());
      })
      .catch((error: unknown) => error)) as LockTimeoutError;
    expect(error.detail).toMatch(/ms.*\. Raise "wait"/);
  });

  it('a nested lock that is lost by force says so, also when a listener of the outer lock unlocks that', async () => {
    let nested: Lock | undefined;
    await here
      .withLock('a', async (outer) => {
        outer.signal.addEventListener('abort', () => void outer.unlock());
        nested = await here.lock('a');
        const lost = aborted(nested.signal);
        await there.forceUnlock('a', { by: 'ops', reason: 'stuck' });
        await lost;
      })
      .catch(() => undefined);
    const forced = { by: 'ops', reason: 'stuck' };
    expect(nested!.signal.reason).toMatchObject({ reason: 'taken', forced });
  });

  it('the time-out of a nested call tells what it asked for, though it waited for one key of a sibling', async () => {
    const read = { mode: 'read' } as const;
    const error = await here.withLock(
      ['a', 'b'],
      async () => {
        const sibling = await here.lock('b', { mode: 'write' });
        const refused = await here.lock(['a', 'b'], { ...read, wait: 60 }).catch((refusal: unknown) => refusal);
        await sibling.unlock();
        return refused;
      },
      read,
    );
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', keys: ['a', 'b'], waitMs: 60 });
  });

  it('the time-out of a call whose parent has ended meanwhile counts all of its wait', async () => {
    let nested: Promise<unknown> | undefined;
    await here.withLock('a', async () => {
      await here.lock('a');
      nested = here.lock('a', { wait: 200 }).catch((error: unknown) => error);
      await there.lock('other');
      void there.lock('a', { wait: '5s' });
      await turn();
    });
    const error = (await nested) as LockTimeoutError;
    expect(error).toMatchObject({ code: 'LOCK_TIMEOUT', waitMs: 200 });
    expect(error.waitedMs).toBeGreaterThanOrEqual(190);
  });
});
