import { describe, expect, it } from '@jest/globals';
import { LockOptionsError } from 'nest-redis-lock';
import { aborted, turn } from '../support/deferred.js';
import type { ClosableLockService } from '../support/lock-services.js';
import { withTwoServices } from '../support/two-services.js';
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

    it('read inside of what writes, and inside of what reads, at once', async () => {
      for (const outer of [write, read]) {
        await here.withLock(KEY, (lock) => here.withLock(KEY, (inner) => expect(inner.fence).toBe(lock.fence), { ...read, wait: 0 }), outer);
      }
      expect(await backing.lockKeys()).toEqual([]);
    });

    it('read together when they are siblings of one reader', async () => {
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

    it('write inside of a reader that is alone, with a fence of their own, and leave it a reader', async () => {
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
          const other = await there.tryLock(KEY, read);
          expect(other?.isHeld).toBe(true);
          await other!.unlock();
          expect(outer).toMatchObject({ isHeld: true, mode: 'read' });
        },
        { ...read, lease: 300 },
      );
      expect(await backing.lockKeys()).toEqual([]);
    });

    it('throw when they are to write while others read, instead of waiting for each other', async () => {
      const other = await there.lock(KEY, read);
      await here.withLock(KEY, () => expect(here.lock(KEY, write)).rejects.toThrow(/inside a call that reads, while others read too/), read);
      await other.unlock();
      const both = () => Promise.all([here.withLock(KEY, turn, read), here.withLock(KEY, turn, write)]);
      await expect(here.withLock(KEY, both, read)).rejects.toBeInstanceOf(LockOptionsError);
      expect(await backing.lockKeys()).toEqual([]);
    });

    it('share the permit of the outer call, one at a time, and can not ask for more than it', async () => {
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
      await here.withLock(KEY, () => expect(here.lock(KEY)).rejects.toThrow(/as the only holder, inside a call that has it as one of permits 2/), permits);
    });

    it('enter the locks of several outer calls together', async () => {
      await here.withLock('a', (a) =>
        here.withLock('b', async (b) => {
          await here.withLock(['a', 'b'], (both) => expect(both.fence).toBe(Math.max(a.fence, b.fence)), { wait: 0 });
          const siblings = [here.withLock(['b', 'a'], turn), here.withLock('a', turn), here.withLock('b', turn)];
          await Promise.all(siblings);
        }),
      );
      expect(await backing.lockKeys()).toEqual([]);
    });

    it('lose the locks of several outer calls when one of them is lost', async () => {
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
  });
}
