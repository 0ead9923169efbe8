import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockOptionsError, LockUnavailableError, type Lock } from 'nest-redis-lock';
import { aborted, deferred, turn } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/stores/lock-services.js';
import { ScriptedStore } from '../support/stores/scripted-store.js';

const OPTIONS = { lease: '10s', wait: '5s', shutdownGrace: 0 } as const;

async function microtasks(count: number): Promise<void> {
  for (let left = count; left > 0; left--) await Promise.resolve();
}

describe('Writers nested in readers', () => {
  let store: ScriptedStore;
  let here: ClosableLockService;
  let there: ClosableLockService;

  const read = { mode: 'read' } as const;
  const write = { mode: 'write' } as const;
  const isRefused = () => Promise.reject(new LockUnavailableError('Redis is gone'));

  beforeEach(() => {
    store = new ScriptedStore();
    here = lockService(store, OPTIONS);
    there = lockService(store, OPTIONS);
  });

  afterEach(async () => {
    await here.close();
    await there.close();
  });

  it('a nested writer lets in all readers that wait behind it at once, however many', async () => {
    const [together, events] = [deferred(), [] as string[]];
    const reads = async (name: string) => {
      events.push(name);
      if (events.length === 4) together.resolve();
      await together.promise;
    };
    const nested = () =>
      Promise.all([
        here.withLock('a', () => turn().then(() => void events.push('writer')), write),
        ...['one', 'two', 'three'].map((name) => here.withLock('a', () => reads(name), read)),
      ]);
    await here.withLock('a', nested, { ...read, wait: 500 });
    expect(events).toEqual(['writer', 'one', 'two', 'three']);
  });

  it('a nested call whose signal aborts gets no lock, though a listener of that unlocks the sibling in front', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    await here.withLock('a', async () => {
      const sibling = await here.lock('a');
      signal.addEventListener('abort', () => void sibling.unlock());
      const nested = here.lock('a', { signal });
      await turn();
      controller.abort('gone');
      await expect(nested).rejects.toBe('gone');
      expect(await here.withLock('a', () => 'next')).toBe('next');
    });
  });

  it('a nested writer lets in readers of several keys behind it, too', async () => {
    const nested = () =>
      Promise.all([
        here.withLock('b', turn, write),
        ...[1, 2, 3].map(() => here.withLock(['a', 'b'], turn, { ...read, wait: 500 })),
      ]);
    await here.withLock('a', () => here.withLock('b', nested, read), write);
    expect(await store.inspect('a')).toBeUndefined();
  });

  it('a nested writer that becomes a reader while a nested reader is coming lets that one in', async () => {
    await here.withLock('a', async (lock) => {
      const reading = here.withLock('a', () => 'read', { ...read, wait: 500 });
      await lock.downgrade();
      expect(await reading).toBe('read');
    });
  });

  it('work that outlived its parent call takes no turn from a writer, when the outermost has become a reader', async () => {
    const [begun, forgotten] = [deferred(), deferred()];
    const outlive = () => {
      begun.resolve();
      return forgotten.promise;
    };
    await here.withLock('a', async (lock) => {
      let outlives!: Promise<unknown>;
      const forgets = () => {
        outlives = here.withLock('a', outlive, read);
        return begun.promise;
      };
      await here.withLock('a', forgets, read);
      await lock.downgrade();
      let inside = 0;
      const writes = async () => {
        expect(++inside).toBe(1);
        forgotten.resolve();
        await expect(outlives).rejects.toMatchObject({ reason: 'unlocked' });
        await turn();
        inside--;
      };
      await Promise.all([here.withLock('a', writes, write), here.withLock('a', writes, write)]);
    });
  });

  it('a nested writer that has outlived its parent call waits neither for itself nor keeps its siblings waiting', async () => {
    await here.withLock(
      'a',
      async () => {
        const [begun, goOn] = [deferred(), deferred()];
        const outlives = async () => {
          begun.resolve();
          await goOn.promise;
          return here.withLock('a', () => 'nested', write);
        };
        let writing!: Promise<unknown>;
        await here.withLock(
          'a',
          () => {
            writing = here.withLock('a', outlives, { ...write, onLost: 'ignore' });
            return begun.promise;
          },
          read,
        );
        expect(await here.withLock('a', () => 'sibling', write)).toBe('sibling');
        goOn.resolve();
        expect(await writing).toBe('nested');
      },
      read,
    );
  });

  it('no nested call is a writer beside other readers, at whatever moment its parent call becomes a reader', async () => {
    let entered = 0;
    for (let moment = 0; moment < 30; moment++) {
      await here.withLock('a', async (lock) => {
        const writing = here
          .withLock('a', async () => {
            entered++;
            expect(await there.tryLock('a', read)).toBeNull();
          })
          .then(undefined, (error: unknown) => expect(error).toBeInstanceOf(LockOptionsError));
        await microtasks(moment);
        await lock.downgrade().catch((error: unknown) => expect(error).toBeInstanceOf(LockOptionsError));
        await writing;
      });
    }
    expect(entered).toBe(30);
  });

  it('a nested reader is not taken for a writer, at whatever moment its parent call becomes a reader', async () => {
    for (let moment = 0; moment < 30; moment++) {
      await here.withLock('a', async (lock) => {
        const reading = here.withLock('a', () => 'read', read);
        await microtasks(moment);
        const downgraded = lock.downgrade().then(
          () => there.withLock('a', () => 'read', read),
          () => 'read',
        );
        expect(await Promise.all([reading, downgraded])).toEqual(['read', 'read']);
      });
    }
  });

  it('a nested call has all of its options, at whatever moment its parent call ends', async () => {
    class Options {
      get mode() {
        return 'read' as const;
      }
    }
    for (let moment = 0; moment < 30; moment++) {
      const mode = await here.withLock('a', async (lock) => {
        const nested = here.withLock('a', (inner) => inner.mode, new Options());
        await microtasks(moment);
        void lock.unlock();
        return nested.catch((error: unknown) => expect(error).toMatchObject({ reason: 'unlocked' }));
      });
      if (mode) expect(mode).toBe('read');
    }
  });

  it('a nested call has the keys of its call, at whatever moment its parent call ends, also if the array changes', async () => {
    for (let moment = 0; moment < 30; moment++) {
      const keys = ['a'];
      let nested: Promise<unknown> | undefined;
      await here.withLock('a', async () => {
        nested = here
          .withLock(keys, (lock) => expect(lock.keys).toEqual(['a']))
          .catch((error: unknown) => expect(error).toMatchObject({ reason: 'unlocked' }));
        keys[0] = 'b';
        await microtasks(moment);
      });
      await nested;
    }
  });

  describe('during the upgrade', () => {
    const moments = ['before', 'after'] as const;

    /** Stops just before or after the store does it. */
    const stop = (moment: 'before' | 'after') => {
      const [stopped, goesOn] = [deferred(), deferred()];
      store[`${moment}Upgrade`] = () => {
        stopped.resolve();
        return goesOn.promise;
      };
      return { stopped: stopped.promise, goOn: goesOn.resolve };
    };

    const writesAnew = async (lock: Lock) => {
      expect(lock.isHeld).toBe(true);
      expect(lock.signal.aborted).toBe(false);
      expect(await there.tryLock('a', read)).toBeNull();
      return 'written';
    };

    it.each(moments)(
      'a nested writer acquires the lock anew when its parent call ends just %s the upgrade',
      async (moment) => {
        const { stopped, goOn } = stop(moment);
        let nested: Promise<string> | undefined;
        await here.withLock(
          'a',
          async () => {
            nested = here.withLock('a', writesAnew, write);
            await stopped;
          },
          read,
        );
        goOn();
        await expect(nested).resolves.toBe('written');
      },
    );

    it.each(moments)(
      'a nested writer acquires the lock anew when the lock of its parent call is lost just %s the upgrade',
      async (moment) => {
        const { stopped, goOn } = stop(moment);
        await here.withLock(
          'a',
          async () => {
            const nested = here.withLock('a', writesAnew, write);
            await stopped;
            await there.forceUnlock('a');
            goOn();
            await expect(nested).resolves.toBe('written');
          },
          { ...read, onLost: 'ignore' },
        );
      },
    );

    it.each(moments)('a nested writer whose signal aborts just %s the upgrade gets no lock', async (moment) => {
      const { stopped, goOn } = stop(moment);
      const controller = new AbortController();
      await here.withLock(
        'a',
        async () => {
          const nested = here.lock('a', { ...write, signal: controller.signal });
          await stopped;
          controller.abort('gone');
          goOn();
          await expect(nested).rejects.toBe('gone');
          await there.withLock('a', () => 'read', { ...read, wait: 500 });
        },
        read,
      );
    });
  });

  it('a failed nested writer leaves another nested writer alone when the store does not reply', async () => {
    await here.withLock(
      ['a', 'b'],
      () =>
        here.withLock(
          'b',
          async () => {
            store.afterUpgrade = isRefused;
            await expect(here.lock('a', write)).rejects.toBeInstanceOf(LockUnavailableError);
            await turn();
            expect(await there.tryLock('b', read)).toBeNull();
          },
          write,
        ),
      read,
    );
  });

  it('a nested writer begins when the end of the one before is confirmed, so the store tells them apart', async () => {
    const [answer, asked] = [deferred(), [] as string[]];
    store.beforeUpgrade = async () => void asked.push('upgrade');
    store.downgrade = async (lock, number) => {
      asked.push('downgrade');
      await answer.promise;
      asked.push('downgraded');
      return store.memory.downgrade(lock, number);
    };
    await here.withLock(
      'a',
      async () => {
        await here.withLock('a', () => undefined, write);
        const next = here.withLock('a', () => 'written', write);
        await turn();
        answer.resolve();
        expect(await next).toBe('written');
      },
      read,
    );
    expect(asked.slice(0, 4)).toEqual(['upgrade', 'downgrade', 'downgraded', 'upgrade']);
  });

  it('a nested writer asks the store nothing when its parent call ends before that', async () => {
    const answer = deferred();
    let upgrades = 0;
    store.beforeUpgrade = async () => void upgrades++;
    store.downgrade = () => answer.promise.then(() => true);
    let next: Promise<unknown> | undefined;
    await here.withLock(
      'a',
      async () => {
        await here.withLock('a', () => undefined, write);
        next = here.tryLock('a', write);
        await turn();
      },
      { ...read, atLeast: '5s' },
    );
    answer.resolve();
    expect(await next).toBeNull();
    expect(upgrades).toBe(1);
  });

  it('calls that are nested thousands of levels deep hear of a loss, from the inside to the outside', async () => {
    const told: number[] = [];
    const descend = (levels: number): Promise<unknown> =>
      here.withLock(
        'a',
        async ({ signal }) => {
          signal.addEventListener('abort', () => told.push(levels));
          if (levels > 1) return descend(levels - 1);
          await there.forceUnlock('a');
          return aborted(signal);
        },
        { warnAfter: '1m' },
      );
    const error: unknown = await descend(10_000).catch((error: unknown) => error);
    expect(error).toHaveProperty('code', 'LOCK_LOST');
    expect(told).toEqual(Array.from({ length: 10_000 }, (_, index) => index + 1));
  });

  describe('when the store does not reply at the end', () => {
    const writeInside = (work: () => unknown) => here.withLock('a', () => here.withLock('a', work, write), read);

    beforeEach(() => {
      store.downgrade = isRefused;
    });

    it('a nested writer returns its own value although the store does not reply at its end', async () => {
      await expect(writeInside(() => 'own')).resolves.toBe('own');
    });

    it('a nested writer throws its own error although the store does not reply at its end', async () => {
      const error = new Error('own');
      await expect(writeInside(() => Promise.reject(error))).rejects.toBe(error);
    });

    it('a nested writer lets other readers in when the store replies again, before the parent call ends', async () => {
      await here.withLock(
        'a',
        async () => {
          await here.withLock('a', () => undefined, write).catch(() => undefined);
          store.downgrade = (lock, number) => store.memory.downgrade(lock, number);
          expect((await there.lock('a', { ...read, wait: 3000 })).isHeld).toBe(true);
        },
        read,
      );
    });

    it('a writer that is downgraded is a reader at once, and the store hears of it when it replies again', async () => {
      const lock = await here.lock('a', write);
      await expect(lock.downgrade()).rejects.toBeInstanceOf(LockUnavailableError);
      expect(lock).toMatchObject({ mode: 'read', isHeld: true });
      store.downgrade = (given, number) => store.memory.downgrade(given, number);
      expect((await there.lock('a', { ...read, wait: 3000 })).isHeld).toBe(true);
      expect(lock.isHeld).toBe(true);
    });
  });
});
