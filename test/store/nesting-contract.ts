import { describe, expect, it } from '@jest/globals';
import { LockOptionsError, LockTimeoutError } from 'nest-redis-lock';
import { aborted, deferred, turn, until } from '../support/deferred.js';
import type { ClosableLockService } from '../support/stores/lock-services.js';
import { withTwoServices } from '../support/stores/two-services.js';
import type { Backing } from './backing.js';

const KEY = 'account:1';

/** What a `LockService` promises of calls nested in each other on every store. */
export function promisesOfNesting(name: string, start: () => Promise<Backing>): void {
  describe(`Nested calls in ${name}`, () => {
    let backing: Backing;
    let here: ClosableLockService;
    let there: ClosableLockService;

    withTwoServices(start, (services) => ({ backing, here, there } = services));

    const read = { mode: 'read' } as const;
    const write = { mode: 'write' } as const;

    it('a nested reader enters at once inside a writer, and inside a reader', async () => {
      for (const outer of [write, read]) {
        await here.withLock(
          KEY,
          (lock) => here.withLock(KEY, (inner) => expect(inner.fence).toBe(lock.fence), { ...read, wait: 0 }),
          outer,
        );
      }
      expect(await backing.lockKeys()).toEqual([]);
    });

    it('nested readers that are siblings enter together', async () => {
      let inside = 0;
      let most = 0;
      const sibling = () =>
        here.withLock(
          KEY,
          async () => {
            most = Math.max(most, ++inside);
            await turn();
            inside--;
          },
          read,
        );
      await here.withLock(KEY, () => Promise.all([sibling(), sibling(), sibling()]), read);
      expect(most).toBe(3);
    });

    it('a nested writer enters inside the only reader, with a fence of its own, and leaves it a reader', async () => {
      await here.withLock(
        KEY,
        async (outer) => {
          await here.withLock(
            KEY,
            async (inner) => {
              expect(inner.fence).toBeGreaterThan(outer.fence);
              expect(await there.tryLock(KEY, read)).toBeNull();
            },
            write,
          );
          const other = await there.lock(KEY, read);
          expect(other.isHeld).toBe(true);
          await other.unlock();
          expect(outer).toMatchObject({ isHeld: true, mode: 'read' });
        },
        { ...read, lease: 600 },
      );
      expect(await backing.lockKeys()).toEqual([]);
    });

    it('a nested writer throws while others read, instead of deadlocking', async () => {
      const other = await there.lock(KEY, read);
      await here.withLock(
        KEY,
        () => expect(here.lock(KEY, write)).rejects.toThrow(/inside a call that reads, while others read too/),
        read,
      );
      await other.unlock();
      const both = () => Promise.all([here.withLock(KEY, turn, read), here.withLock(KEY, turn, write)]);
      await expect(here.withLock(KEY, both, read)).rejects.toBeInstanceOf(LockOptionsError);
      expect(await backing.lockKeys()).toEqual([]);
    });

    it('nested calls share the permit of the parent call, one at a time, and its number of permits', async () => {
      const permits = { permits: 2 };
      let inside = 0;
      const sibling = () =>
        here.withLock(
          KEY,
          async () => {
            expect(++inside).toBe(1);
            await turn();
            inside--;
          },
          permits,
        );
      await here.withLock(KEY, () => Promise.all([sibling(), sibling()]), permits);
      await here.withLock(
        KEY,
        () =>
          expect(here.lock(KEY)).rejects.toThrow(/as the only holder, inside a call that has it as one of permits 2/),
        permits,
      );
    });

    it('a nested call enters the locks of several parent calls together', async () => {
      await here.withLock('a', (a) =>
        here.withLock('b', async (b) => {
          await here.withLock(['a', 'b'], (both) => expect(both.fence).toBe(Math.max(a.fence, b.fence)), { wait: 0 });
          const siblings = [here.withLock(['b', 'a'], turn), here.withLock('a', turn), here.withLock('b', turn)];
          await Promise.all(siblings);
        }),
      );
      expect(await backing.lockKeys()).toEqual([]);
    });

    it.each([
      ['fair', { fair: true }],
      ['to read', { mode: 'read' }],
    ] as const)(
      'a nested call gets the next key inside of a lock held %s, although a call of both keys waits',
      async (_how, how) => {
        const order: string[] = [];
        const taken = deferred();
        const both = taken.promise.then(() => here.withLock(['a', 'b'], () => order.push('both')));
        const inner = async () => {
          taken.resolve();
          await until(async () => (await here.inspect('a'))?.waiters?.length === 1);
          await here.withLock('b', () => order.push('nested'), { wait: 3000 });
        };
        await Promise.all([here.withLock('a', inner, how), both]);
        expect(order).toEqual(['nested', 'both']);
        expect(await backing.lockKeys()).toEqual([]);
      },
    );

    it('a nested call loses the locks of several parent calls when one of them is lost', async () => {
      await here.withLock('a', () =>
        here.withLock(
          'b',
          async () => {
            const lock = await here.lock(['a', 'b']);
            await there.forceUnlock('b');
            expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken' });
          },
          { onLost: 'ignore' },
        ),
      );
    });

    describe('writers inside readers', () => {
      it.each(['beside', 'around'])(
        'nested writers keep other readers out until the last one of the outer call has ended, also one %s the other',
        async (where) => {
          const firstEnded = deferred();
          const writeA = () => here.withLock('a', turn, write).then(firstEnded.resolve);
          const writeB = () =>
            here.withLock(
              'b',
              async (lock) => {
                if (where === 'around') await writeA();
                await firstEnded.promise;
                await expect(there.lock('b', { ...read, wait: 100 })).rejects.toBeInstanceOf(LockTimeoutError);
                expect(lock.isHeld).toBe(true);
              },
              write,
            );
          await here.withLock(
            ['a', 'b'],
            async () => {
              await Promise.all(where === 'around' ? [writeB()] : [writeA(), writeB()]);
              expect((await there.lock(['a', 'b'], read)).isHeld).toBe(true);
            },
            read,
          );
        },
      );

      it('a nested writer acquires the lock anew when it outlives its parent call, whenever that ends', async () => {
        for (let moment = 0; moment < 12; moment++) {
          let nested: Promise<void> | undefined;
          await here.withLock(
            KEY,
            async () => {
              nested = here.withLock(
                KEY,
                async (lock) => {
                  expect(lock.isHeld).toBe(true);
                  await turn();
                  if (lock.signal.aborted) return; // it got in before the outer call ended, and is told
                  expect(lock.isHeld).toBe(true);
                  expect(await there.tryLock(KEY, read)).toBeNull();
                },
                { ...write, onLost: 'ignore' },
              );
              nested.catch(() => undefined);
              for (let passed = 0; passed < moment; passed++) await Promise.resolve();
            },
            read,
          );
          await nested;
        }
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a refused nested writer leaves all parent calls readers when one of them is not alone', async () => {
        await there.lock('b', read);
        const outer = here.withLock(
          'a',
          () =>
            here.withLock(
              'b',
              async () => {
                await expect(here.lock(['a', 'b'], write)).rejects.toBeInstanceOf(LockOptionsError);
                expect((await there.lock('a', { ...read, wait: 500 })).isHeld).toBe(true);
              },
              read,
            ),
          read,
        );
        await outer;
      });

      it('a nested writer never meets a sibling that reads, also an earlier one on several keys', async () => {
        const [endA, endB] = [deferred(), deferred()];
        const [inA, inB] = [deferred(), deferred()];
        const seen: string[] = [];
        const writeA = () => here.withLock('a', () => (inA.resolve(), endA.promise), write);
        const readBoth = () => here.withLock(['a', 'b'], () => void seen.push('reads both'), read);
        const writeB = () =>
          here.withLock('b', () => (inB.resolve(), endB.promise.then(() => seen.push('wrote b'))), write);
        await here.withLock(
          ['a', 'b'],
          async () => {
            const first = writeA();
            await inA.promise;
            const reader = readBoth();
            const second = writeB();
            await inB.promise;
            endA.resolve();
            await first;
            await turn();
            endB.resolve();
            await Promise.all([reader, second]);
          },
          read,
        );
        expect(seen).toEqual(['wrote b', 'reads both']);
      });
    });

    it('a nested reader never waits for a sibling that waits for another key to write', async () => {
      const inB = deferred();
      await here.withLock(
        ['a', 'b'],
        async () => {
          const writer = here.withLock(
            'b',
            () => (inB.resolve(), turn().then(() => here.withLock('a', () => 'read a', { ...read, wait: 1000 }))),
            write,
          );
          await inB.promise;
          const reader = here.withLock(['a', 'b'], () => 'read both', read);
          expect(await Promise.all([writer, reader])).toEqual(['read a', 'read both']);
        },
        read,
      );
    });

    it('a nested call keeps the key of its parent call with its own `atLeast`', async () => {
      const startedAt = performance.now();
      await here.withLock(KEY, () => here.withLock(KEY, () => undefined, { atLeast: 300 }));
      expect(await there.tryLock(KEY)).toBeNull();
      expect((await there.lock(KEY)).isHeld).toBe(true);
      expect(performance.now() - startedAt).toBeGreaterThan(290);
    });
  });
}
