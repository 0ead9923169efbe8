import { afterEach, beforeEach, describe, expect, it } from '@jest/globals';
import { LockOptionsError, LockTimeoutError, type Lock, type LockOptions } from 'nest-redis-lock';
import { aborted, turn, until } from '../support/deferred.js';
import { lockService, type ClosableLockService } from '../support/lock-services.js';
import type { Backing } from './backing.js';

const KEY = 'account:1';

/** What a `LockService` promises of readers, writers and semaphores on every store. */
export function promisesOfSharing(name: string, start: () => Promise<Backing>): void {
  describe(`Shared locks in ${name}`, () => {
    let backing: Backing;
    let here: ClosableLockService;
    let there: ClosableLockService;

    beforeEach(async () => {
      backing = await start();
      here = lockService(backing.store(), { lease: 1000, wait: 5000, shutdownGrace: 0 });
      there = lockService(backing.store(), { lease: 1000, wait: 5000, shutdownGrace: 0 });
    });

    afterEach(async () => {
      await here.close();
      await there.close();
      await backing.stop();
    });

    /** Queues, and notes its name when it is in. */
    async function queue(who: ClosableLockService, options: LockOptions, name: string, entered: string[], place: number): Promise<Lock> {
      const lock = who.lock(KEY, options).then((lock) => {
        entered.push(name);
        return lock;
      });
      await backing.waiters(KEY, place);
      return lock;
    }

    /** Begins to wait, without making the caller wait for the lock itself. */
    async function waits(...args: Parameters<typeof queue>): Promise<{ readonly lock: Promise<Lock> }> {
      const lock = queue(...args);
      lock.catch(() => undefined);
      await backing.waiters(KEY, args[4]);
      return { lock };
    }

    const read = { mode: 'read' } as const;
    const write = { mode: 'write' } as const;

    describe('readers and writers', () => {
      it('read together, in one process and in two', async () => {
        const locks = await Promise.all([here.lock(KEY, read), here.lock(KEY, read), there.lock(KEY, read)]);
        expect(locks.map(({ mode, isHeld }) => [mode, isHeld])).toEqual(Array(3).fill(['read', true]));
        await Promise.all(locks.map((lock) => lock.unlock()));
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('write alone, also against those who ask for an exclusive lock', async () => {
        const writer = await here.lock(KEY, write);
        expect(writer.mode).toBe('write');
        for (const who of [here, there]) {
          expect(await who.tryLock(KEY, read)).toBeNull();
          expect(await who.tryLock(KEY, write)).toBeNull();
          expect(await who.tryLock(KEY)).toBeNull();
        }
        await writer.unlock();
        const reader = await there.lock(KEY, read);
        for (const who of [here, there]) {
          expect(await who.tryLock(KEY, write)).toBeNull();
          expect(await who.tryLock(KEY)).toBeNull();
        }
        await reader.unlock();
        expect(await here.tryLock(KEY)).not.toBeNull();
      });

      it('are served in phases, first come, first served: a reader who comes after a writer waits for it', async () => {
        const entered: string[] = [];
        const first = await here.lock(KEY, read);
        const writer = await waits(there, write, 'writer', entered, 1);
        const late = [await waits(here, read, 'reader', entered, 2), await waits(there, read, 'reader', entered, 3)];
        const last = await waits(here, { ...write, fair: true }, 'last', entered, 4);
        expect(await here.tryLock(KEY, read)).toBeNull();
        await first.unlock();
        const written = await writer.lock;
        expect(entered).toEqual(['writer']);
        await written.unlock();
        const readers = await Promise.all(late.map(({ lock }) => lock));
        expect(entered).toEqual(['writer', 'reader', 'reader']);
        expect(readers.every(({ isHeld }) => isHeld)).toBe(true);
        for (const reader of readers) await reader.unlock();
        await (await last.lock).unlock();
        expect(entered).toEqual(['writer', 'reader', 'reader', 'last']);
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('have leases of their own: one that ended keeps nobody out, whatever the others renew', async () => {
        const renewing = await here.lock(KEY, { ...read, lease: 400 });
        const crashed = await there.lock(KEY, { ...read, lease: 800, watchdog: false });
        await aborted(crashed.signal);
        expect(renewing.isHeld).toBe(true);
        await until(async () => (await there.inspect(KEY))?.holders.length === 1, 500);
        expect(await there.tryLock(KEY, write)).toBeNull();
        const writer = there.lock(KEY, write);
        await backing.waiters(KEY, 1);
        await renewing.unlock();
        expect((await writer).isHeld).toBe(true);
        expect(await crashed.unlock()).toBe(false);
        expect((await writer).isHeld).toBe(true);
      });

      it('let a writer in when the lease of the last reader ends', async () => {
        await here.lock(KEY, { ...read, lease: 200, watchdog: false });
        const writer = await there.lock(KEY, write);
        expect(writer.isHeld).toBe(true);
      });

      it('are renewed by the watchdog', async () => {
        const readers = [await here.lock(KEY, { ...read, lease: 400 }), await there.lock(KEY, { ...read, lease: 400 })];
        await expect(there.lock(KEY, { ...write, wait: 900 })).rejects.toBeInstanceOf(LockTimeoutError);
        expect(readers.every(({ isHeld }) => isHeld)).toBe(true);
      });

      it('get a larger fence with each grant, readers too', async () => {
        const fences: number[] = [];
        const readers = [await here.lock(KEY, read), await there.lock(KEY, read), await here.lock(KEY, read)];
        fences.push(...readers.map(({ fence }) => fence));
        await Promise.all(readers.map((reader) => reader.unlock()));
        fences.push(await there.withLock(KEY, ({ fence }) => fence, write), await here.withLock(KEY, ({ fence }) => fence, read));
        expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
      });

      it('become readers when they have written, and let other readers in, but no writer', async () => {
        const entered: string[] = [];
        const lock = await here.lock(KEY, write);
        const reader = await waits(there, read, 'reader', entered, 1);
        const writer = await waits(there, write, 'writer', entered, 2);
        await lock.downgrade();
        expect(lock).toMatchObject({ mode: 'read', isHeld: true });
        await reader.lock;
        expect(entered).toEqual(['reader']);
        await lock.extend();
        expect(await lock.unlock()).toBe(true);
        await (await reader.lock).unlock();
        await (await writer.lock).unlock();
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('stay renewed after a downgrade', async () => {
        const lock = await here.lock(KEY, { lease: 400 });
        await lock.downgrade();
        await expect(there.lock(KEY, { wait: 900 })).rejects.toBeInstanceOf(LockTimeoutError);
        expect(lock.isHeld).toBe(true);
      });

      it('give up without a trace, and let those behind them in', async () => {
        const entered: string[] = [];
        const first = await here.lock(KEY, read);
        const controller = new AbortController();
        const writer = await waits(there, { ...write, signal: controller.signal }, 'writer', entered, 1);
        const reader = await waits(there, read, 'reader', entered, 2);
        controller.abort('gone');
        await expect(writer.lock).rejects.toBe('gone');
        const others = await Promise.all([reader.lock, here.lock(KEY, read)]);
        await Promise.all([first, ...others].map((lock) => lock.unlock()));
        expect(await backing.lockKeys()).toEqual([]);
      });
    });

    describe('nested calls', () => {
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
          { ...read, lease: 1000 },
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

    describe('semaphores', () => {
      const permits = { permits: 3 };

      it('let so many in, over all processes, and no more', async () => {
        const locks = await Promise.all([here.lock(KEY, permits), there.lock(KEY, permits), here.lock(KEY, permits)]);
        expect(locks.map(({ mode }) => mode)).toEqual(['permit', 'permit', 'permit']);
        for (const who of [here, there]) expect(await who.tryLock(KEY, permits)).toBeNull();
        await locks[1].unlock();
        expect(await here.tryLock(KEY, permits)).not.toBeNull();
        expect(await here.tryLock(KEY, permits)).toBeNull();
      });

      it('hand a permit to the next in the queue, first come, first served', async () => {
        const entered: string[] = [];
        const locks = [await here.lock(KEY, permits), await here.lock(KEY, permits), await there.lock(KEY, permits)];
        const waiting = [];
        for (const [index, who] of [there, here, there, here].entries()) waiting.push(await waits(who, permits, String(index), entered, index + 1));
        await locks[0]!.unlock();
        await waiting[0]!.lock;
        expect(entered).toEqual(['0']);
        await Promise.all([locks[1]!.unlock(), locks[2]!.unlock()]);
        await Promise.all([waiting[1]!.lock, waiting[2]!.lock]);
        expect(entered.sort()).toEqual(['0', '1', '2']);
        await (await waiting[0]!.lock).unlock();
        await waiting[3]!.lock;
        for (const { lock } of waiting.slice(1)) await (await lock).unlock();
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('get the permits of crashed holders back, whatever the others renew', async () => {
        const renewing = await here.lock(KEY, { ...permits, lease: 400 });
        await there.lock(KEY, { ...permits, lease: 800, watchdog: false });
        await there.lock(KEY, { ...permits, lease: 800, watchdog: false });
        const next = await Promise.all([there.lock(KEY, permits), there.lock(KEY, permits)]);
        expect([renewing, ...next].every(({ isHeld }) => isHeld)).toBe(true);
        expect(await here.tryLock(KEY, permits)).toBeNull();
      });

      it('refuse another number of permits while somebody has one', async () => {
        const lock = await here.lock(KEY, permits);
        await expect(there.lock(KEY, { permits: 2 })).rejects.toThrow(/"permits" is 2, but those who hold lock "account:1" now were given one of 3/);
        await expect(there.tryLock(KEY, { permits: 4 })).rejects.toBeInstanceOf(LockOptionsError);
        await lock.unlock();
        expect(await there.tryLock(KEY, { permits: 2 })).not.toBeNull();
      });

      it('exclude those who want the key for themselves', async () => {
        const lock = await here.lock(KEY, permits);
        expect(await there.tryLock(KEY)).toBeNull();
        expect(await there.tryLock(KEY, read)).toBeNull();
        const alone = there.lock(KEY);
        await backing.waiters(KEY, 1);
        expect(await here.tryLock(KEY, permits)).toBeNull();
        await lock.unlock();
        expect((await alone).isHeld).toBe(true);
      });

      it.each([[{ permits: 0 }], [{ permits: 1.5 }], [{ permits: '3' }], [{ permits: 3, mode: 'read' }], [{ mode: 'shared' }], [{ label: '' }], [{ label: '\ud800' }], [{ atLeast: -1 }]])(
        'refuse the options %j',
        async (options) => {
          await expect(here.lock(KEY, options as object)).rejects.toBeInstanceOf(LockOptionsError);
        },
      );
    });

    describe('several keys', () => {
      it('are shared together', async () => {
        const reader = await here.lock(['a', 'b'], read);
        expect((await there.lock(['b', 'c'], read)).isHeld).toBe(true);
        expect(await there.tryLock(['a', 'c'], write)).toBeNull();
        await reader.unlock();
        expect(await there.tryLock('a', write)).not.toBeNull();
      });
    });

    describe('atLeast', () => {
      it('keeps the key for so long after a short run, for everybody', async () => {
        const startedAt = performance.now();
        await here.withLock(KEY, () => undefined, { atLeast: 300 });
        expect(await here.tryLock(KEY)).toBeNull();
        expect(await there.tryLock(KEY)).toBeNull();
        expect((await there.lock(KEY)).isHeld).toBe(true);
        expect(performance.now() - startedAt).toBeGreaterThan(290);
        await until(async () => (await backing.lockKeys()).length <= 1);
      });

      it('does not keep a key longer than the work took', async () => {
        const lock = await here.lock(KEY, { atLeast: 50 });
        await until(() => Date.now() > lock.acquiredAt.getTime() + 60);
        expect(await lock.unlock()).toBe(true);
        expect(await there.tryLock(KEY)).not.toBeNull();
      });

      it('keeps a permit, too', async () => {
        await here.withLock(KEY, () => undefined, { permits: 2, atLeast: 300 });
        const other = await there.tryLock(KEY, { permits: 2 });
        expect(await there.tryLock(KEY, { permits: 2 })).toBeNull();
        await other!.unlock();
        expect((await there.lock(KEY)).isHeld).toBe(true);
      });
    });

    describe('inspect', () => {
      it('says null of a free key', async () => {
        expect(await here.inspect(KEY)).toBeNull();
      });

      it('names the holder, since when it holds it, its fence, and those who wait in their order', async () => {
        const lock = await here.lock(KEY, { label: 'nightly report. ünï 50%' });
        const waiting = [there.lock(KEY, { label: 'second', fair: true }), there.lock(KEY, { mode: 'read' }), there.lock(KEY, { permits: 2, label: 'last/one' })];
        await backing.waiters(KEY, 3);
        const info = (await there.inspect(KEY))!;
        expect(info).toMatchObject({ key: KEY, mode: 'exclusive', permits: undefined, holders: [info.holder] });
        expect(info.holder).toMatchObject({ token: lock.token, pid: process.pid, fence: lock.fence, since: lock.acquiredAt, label: 'nightly report. ünï 50%' });
        expect(`${info.holder.host}:${info.holder.pid}:${info.holder.instance}.`).toBe(lock.token.slice(0, lock.token.lastIndexOf('.') + 1));
        expect(info.holder.remaining).toBeGreaterThan(0);
        expect(info.holder.remaining).toBeLessThanOrEqual(1000);
        expect(info.waiters.map(({ mode, label, pid }) => [mode, label, pid])).toEqual([
          ['exclusive', 'second', process.pid],
          ['read', undefined, process.pid],
          ['permit', 'last/one', process.pid],
        ]);
        await lock.unlock();
        for (const one of waiting) await (await one).unlock();
      });

      it('names all readers, and all who have a permit', async () => {
        const readers = [await here.lock(KEY, { ...read, label: 'one' }), await there.lock(KEY, read)];
        // A process that has just begun to listen may miss the first question.
        await until(async () => (await here.inspect(KEY))!.holders.every(({ fence }) => fence !== undefined));
        const info = (await here.inspect(KEY))!;
        expect(info).toMatchObject({ mode: 'read', permits: undefined });
        expect(info.holders.map(({ token, fence }) => [token, fence]).sort()).toEqual(readers.map(({ token, fence }) => [token, fence]).sort());
        const permit = await here.lock('a', { permits: 7 });
        expect(await there.inspect('a')).toMatchObject({ mode: 'permit', permits: 7, holder: { fence: permit.fence } });
      });

      it('does not take, renew or free anything', async () => {
        const lock = await here.lock(KEY, { ...read, lease: 200, watchdog: false });
        while (lock.isHeld) await here.inspect(KEY);
        await until(async () => (await here.inspect(KEY)) === null, 500);
      });
    });

    describe('forceUnlock', () => {
      it('is told to the holder at once, lets the next one in, with a larger fence', async () => {
        const lock = await here.lock(KEY, { lease: '30s' });
        const next = there.lock(KEY);
        await backing.waiters(KEY, 1);
        const lost = aborted(lock.signal);
        expect(await there.forceUnlock(KEY)).toBe(true);
        expect(await lost).toMatchObject({ code: 'LOCK_LOST', reason: 'taken' });
        expect((await next).fence).toBeGreaterThan(lock.fence);
        expect(await lock.unlock()).toBe(false);
        expect((await next).isHeld).toBe(true);
      });

      it('takes a shared key from all who share it', async () => {
        for (const terms of [read, { permits: 2 }]) {
          const locks = [await here.lock(KEY, { ...terms, lease: '30s' }), await there.lock(KEY, { ...terms, lease: '30s' })];
          const lost = locks.map(({ signal }) => aborted(signal));
          expect(await here.forceUnlock(KEY)).toBe(true);
          expect(await Promise.all(lost)).toMatchObject([{ reason: 'taken' }, { reason: 'taken' }]);
          expect(await here.isLocked(KEY)).toBe(false);
        }
        expect(await backing.lockKeys()).toEqual([]);
      });
    });
  });
}
