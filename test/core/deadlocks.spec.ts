import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockTimeoutError, type Duration } from 'nest-redis-lock';
import { MemoryLockStore } from 'nest-redis-lock/testing';
import { deferred, turn } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';

/** Long enough for calls that do not wait for each other, on a machine that is busy. */
const LONG = '20s';
const SHORT = { wait: 60 } as const;
const A_DEADLOCK = /deadlock: this call holds lock "a", which a call that it waited for waits for\. Take these keys/;

describe('Deadlocks', () => {
  let locks: ClosableLockService;

  beforeEach(() => {
    locks = lockService(new MemoryLockStore(), { wait: LONG, shutdownGrace: 0 });
  });

  afterEach(() => locks.close());

  /** Calls that each take a key, and when all have theirs, another inside. */
  const circle = (...pairs: (readonly [first: string, second: string, wait: Duration])[]) => {
    const all = deferred();
    let taken = 0;
    return Promise.all(
      pairs.map(([first, second, wait]) =>
        locks
          .withLock(first, () => {
            if (++taken === pairs.length) all.resolve();
            return all.promise.then(() => locks.withLock(second, turn, { wait }));
          })
          .then(
            () => 'done',
            (error: unknown) => error,
          ),
      ),
    );
  };

  it('two siblings that wait for each other say so when one wait is over, and the other goes on', async () => {
    const [error, other] = await locks.withLock(['a', 'b'], () => circle(['a', 'b', 60], ['b', 'a', LONG]));
    expect(error).toBeInstanceOf(LockTimeoutError);
    expect(error).toMatchObject({ isDeadlock: true, detail: expect.stringMatching(A_DEADLOCK) });
    expect(other).toBe('done');
  });

  it('three siblings in one call that wait for each other say so when the wait of one is over', async () => {
    const three = () => circle(['a', 'b', 60], ['b', 'c', LONG], ['c', 'a', LONG]);
    const [error, ...others] = await locks.withLock(['a', 'b', 'c'], three);
    expect(error).toMatchObject({ isDeadlock: true });
    expect(others).toEqual(['done', 'done']);
  });

  it('two siblings that wait for each other both say so when their waits end one after the other', async () => {
    const later = deferred();
    const first = (error: unknown) => later.promise.then(() => Promise.reject(error as Error));
    const [taken, both] = [deferred(), deferred()];
    const errors = await locks.withLock(['a', 'b'], () =>
      Promise.allSettled([
        locks.withLock('a', () => {
          taken.resolve();
          return both.promise.then(() => locks.withLock('b', turn, SHORT)).catch(first);
        }),
        locks.withLock('b', () =>
          taken.promise.then(() => {
            both.resolve();
            return locks.withLock('a', turn, { wait: 120 }).finally(later.resolve);
          }),
        ),
      ]),
    );
    expect(errors).toMatchObject([{ reason: { isDeadlock: true } }, { reason: { isDeadlock: true } }]);
  });

  it('two calls at the outermost level that wait for each other say so', async () => {
    const [error, other] = await circle(['a', 'b', 60], ['b', 'a', LONG]);
    expect(error).toMatchObject({ isDeadlock: true, detail: expect.stringMatching(A_DEADLOCK) });
    expect(other).toBe('done');
  });

  it('calls that wait for each other say so when the lock of one is that of a call further out', async () => {
    const both = deferred();
    const waiting = locks.withLock('b', () => both.promise.then(() => locks.withLock('a', turn)));
    const error = locks.withLock('a', () =>
      locks.withLock('c', () => {
        both.resolve();
        return locks.withLock('b', turn, SHORT);
      }),
    );
    await expect(error).rejects.toMatchObject({ isDeadlock: true, detail: expect.stringMatching(A_DEADLOCK) });
    await waiting;
  });

  it('calls that wait for each other say so when one takes its locks fair, and waits in the store', async () => {
    const both = deferred();
    const waiting = locks.withLock('b', () => both.promise.then(() => locks.withLock('a', turn, { fair: true })));
    const error = locks.withLock('a', () => {
      both.resolve();
      return locks.withLock('b', turn, { ...SHORT, fair: true });
    });
    await expect(error).rejects.toMatchObject({ isDeadlock: true });
    await waiting;
  });

  describe('no deadlock', () => {
    const isNone = { isDeadlock: false, detail: expect.not.stringContaining('deadlock') };

    it('a call that waits for one that only takes long is in no deadlock', async () => {
      const [entered, end] = [deferred(), deferred()];
      await locks.withLock(['a', 'b'], async () => {
        const long = locks.withLock('b', () => {
          entered.resolve();
          return end.promise;
        });
        await entered.promise;
        await expect(locks.withLock('a', () => locks.withLock('b', turn, SHORT))).rejects.toMatchObject(isNone);
        end.resolve();
        await long;
      });
    });

    it('a call that waits for one that waits for something else is in no deadlock', async () => {
      const [entered, asked] = [deferred(), deferred()];
      const stranger = await locks.lock('c');
      await locks.withLock(['a', 'b'], async () => {
        const other = locks.withLock('b', () => {
          entered.resolve();
          asked.resolve();
          return locks.withLock('c', turn);
        });
        await entered.promise;
        await asked.promise;
        await expect(locks.withLock('a', () => locks.withLock('b', turn, SHORT))).rejects.toMatchObject(isNone);
        await stranger.unlock();
        await other;
      });
    });

    it('readers, who do not wait for each other, are in no deadlock', async () => {
      const read = { mode: 'read' } as const;
      const entered = deferred();
      const end = deferred();
      const stranger = await locks.lock('b');
      const other = locks.withLock(
        'a',
        async () => {
          entered.resolve();
          await end.promise;
        },
        read,
      );
      await entered.promise;
      const waiting = locks.withLock('a', () => locks.withLock('b', turn, { ...SHORT }), read);
      await expect(waiting).rejects.toMatchObject(isNone);
      end.resolve();
      await stranger.unlock();
      await other;
    });

    it('a call is in no deadlock once the other one has given up, been aborted, or been granted', async () => {
      await locks.withLock(['a', 'b'], async () => {
        const entered = deferred();
        const end = deferred();
        const stop = new AbortController();
        const other = locks.withLock('b', async () => {
          // All three waits are over before the call that holds "a" asks for "b".
          const holding = locks.withLock('a', () => entered.promise);
          await expect(locks.withLock('a', turn, SHORT)).rejects.toMatchObject(isNone);
          const aborted = locks.withLock('a', turn, { signal: stop.signal });
          stop.abort(new Error('stopped'));
          await expect(aborted).rejects.toThrow('stopped');
          const granted = locks.withLock('a', turn);
          entered.resolve();
          await Promise.all([holding, granted]);
          await end.promise;
        });
        await entered.promise;
        await expect(locks.withLock('a', () => locks.withLock('b', turn, SHORT))).rejects.toMatchObject(isNone);
        end.resolve();
        await other;
      });
    });
  });

  it('a key that the call holds in another service is part of no circle', async () => {
    const others = lockService(new MemoryLockStore(), { shutdownGrace: 0 });
    const end = deferred();
    const [hasB, hasK] = [deferred(), deferred()];
    const third = locks.withLock('k', () => (hasK.resolve(), end.promise));
    await hasK.promise;
    const second = locks.withLock('b', () => (hasB.resolve(), locks.withLock('k', turn, { wait: LONG })));
    await hasB.promise;
    const first = others.withLock('k', () => locks.withLock('a', () => locks.withLock('b', turn, SHORT)));
    await expect(first).rejects.toMatchObject({ code: 'LOCK_TIMEOUT', isDeadlock: false });
    end.resolve();
    await Promise.all([second, third]);
    await others.close();
  });
});
