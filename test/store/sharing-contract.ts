import { describe, expect, it } from '@jest/globals';
import { LockOptionsError, LockTimeoutError, type LockOptions, type Sharing } from 'nest-redis-lock';
import { aborted, until } from '../support/deferred.js';
import { Line } from '../support/processes/line.js';
import type { ClosableLockService } from '../support/stores/lock-services.js';
import { waitSilently } from '../support/stores/silent-waiter.js';
import { withTwoServices, type TwoServices } from '../support/stores/two-services.js';
import type { Backing } from './backing.js';

const KEY = 'account:1';

/** What a `LockService` promises of readers, writers and semaphores on every store. */
export function promisesOfSharing(name: string, start: () => Promise<Backing>): void {
  describe(`Shared locks in ${name}`, () => {
    let backing: Backing;
    let here: ClosableLockService;
    let there: ClosableLockService;
    let another: TwoServices['another'];
    let store: TwoServices['store'];

    withTwoServices(start, (services) => ({ backing, here, there, another, store } = services));

    const read = { mode: 'read' } as const;
    const write = { mode: 'write' } as const;

    describe('readers and writers', () => {
      it('readers enter together, in one process and in two', async () => {
        const locks = await Promise.all([here.lock(KEY, read), here.lock(KEY, read), there.lock(KEY, read)]);
        expect(locks.map(({ mode, isHeld }) => [mode, isHeld])).toEqual(Array(3).fill(['read', true]));
        await Promise.all(locks.map((lock) => lock.unlock()));
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a writer is alone, also against callers that ask for an exclusive lock', async () => {
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

      it('readers and writers are served first come, first served, so a later reader waits for a writer', async () => {
        const line = new Line(backing, KEY);
        const first = await here.lock(KEY, read);
        const writer = await line.join(there, write, 'writer');
        const late = [await line.join(here, read, 'reader'), await line.join(there, read, 'reader')];
        const last = await line.join(here, { ...write, fair: true }, 'last');
        expect(await here.tryLock(KEY, read)).toBeNull();
        await first.unlock();
        const written = await writer.lock;
        expect(line.entered).toEqual(['writer']);
        await written.unlock();
        const readers = await Promise.all(late.map(({ lock }) => lock));
        expect(line.entered).toEqual(['writer', 'reader', 'reader']);
        expect(readers.every(({ isHeld }) => isHeld)).toBe(true);
        for (const reader of readers) await reader.unlock();
        await (await last.lock).unlock();
        expect(line.entered).toEqual(['writer', 'reader', 'reader', 'last']);
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('readers have leases of their own: one that ended keeps nobody out, whatever the others renew', async () => {
        const renewing = await here.lock(KEY, { ...read, lease: 3000 });
        const crashed = await there.lock(KEY, { ...read, lease: 300, watchdog: false });
        await aborted(crashed.signal);
        expect(renewing.isHeld).toBe(true);
        await until(async () => (await there.inspect(KEY))?.holders.length === 1, 1500);
        expect(await there.tryLock(KEY, write)).toBeNull();
        const writer = there.lock(KEY, write);
        await backing.waiters(KEY, 1);
        await renewing.unlock();
        expect((await writer).isHeld).toBe(true);
        expect(await crashed.unlock()).toBe(false);
        expect((await writer).isHeld).toBe(true);
      });

      it('a writer enters when the lease of the last reader ends', async () => {
        await here.lock(KEY, { ...read, lease: 200, watchdog: false });
        const writer = await there.lock(KEY, write);
        expect(writer.isHeld).toBe(true);
      });

      it('readers and writers are renewed by the watchdog', async () => {
        const readers = [
          await here.lock(KEY, { ...read, lease: 1000 }),
          await there.lock(KEY, { ...read, lease: 1000 }),
        ];
        await expect(there.lock(KEY, { ...write, wait: 1500 })).rejects.toBeInstanceOf(LockTimeoutError);
        expect(readers.every(({ isHeld }) => isHeld)).toBe(true);
      });

      it('each grant has a larger fence, also of readers', async () => {
        const fences: number[] = [];
        const readers = [await here.lock(KEY, read), await there.lock(KEY, read), await here.lock(KEY, read)];
        fences.push(...readers.map(({ fence }) => fence));
        await Promise.all(readers.map((reader) => reader.unlock()));
        fences.push(
          await there.withLock(KEY, ({ fence }) => fence, write),
          await here.withLock(KEY, ({ fence }) => fence, read),
        );
        expect(fences).toEqual([...new Set(fences)].sort((a, b) => a - b));
      });

      it('a writer that is downgraded lets other readers in, but no writer', async () => {
        const line = new Line(backing, KEY);
        const lock = await here.lock(KEY, write);
        const reader = await line.join(there, read, 'reader');
        const writer = await line.join(there, write, 'writer');
        await lock.downgrade();
        expect(lock).toMatchObject({ mode: 'read', isHeld: true });
        await reader.lock;
        expect(line.entered).toEqual(['reader']);
        await lock.extend();
        expect(await lock.unlock()).toBe(true);
        await (await reader.lock).unlock();
        await (await writer.lock).unlock();
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('a lock stays renewed after a downgrade', async () => {
        const lock = await here.lock(KEY, { lease: 1000 });
        await lock.downgrade();
        await expect(there.lock(KEY, { wait: 1500 })).rejects.toBeInstanceOf(LockTimeoutError);
        expect(lock.isHeld).toBe(true);
      });

      it('a waiter that gives up leaves nothing behind, and lets in the waiters behind it', async () => {
        const line = new Line(backing, KEY);
        const first = await here.lock(KEY, read);
        const controller = new AbortController();
        const writer = await line.join(there, { ...write, signal: controller.signal }, 'writer');
        const reader = await line.join(there, read, 'reader');
        controller.abort('gone');
        await expect(writer.lock).rejects.toBe('gone');
        const others = await Promise.all([reader.lock, here.lock(KEY, read)]);
        await Promise.all([first, ...others].map((lock) => lock.unlock()));
        expect(await backing.lockKeys()).toEqual([]);
      });
    });

    describe('those behind a waiter', () => {
      const kinds: [Sharing, LockOptions][] = [
        ['read', read],
        ['permits:2', { permits: 2 }],
      ];

      it.each(kinds)(
        'waiters behind one that gives up are notified at once that they may share the key (%s)',
        async (sharing, terms) => {
          const controller = new AbortController();
          await here.lock(KEY, terms);
          const writer = there.lock(KEY, { ...write, signal: controller.signal });
          await backing.waiters(KEY, 1);
          const { granted } = await waitSilently(store(), KEY, sharing);
          await backing.waiters(KEY, 2);
          controller.abort('gone');
          await expect(writer).rejects.toBe('gone');
          await granted;
        },
      );

      it('waiters behind one whose process died wait for it no longer than it counts as alive', async () => {
        const dead = store();
        for (const [key, [, terms]] of [
          ['a', kinds[0]!],
          ['b', kinds[1]!],
        ] as const) {
          await here.lock(key, terms);
          await waitSilently(dead, key, 'exclusive');
        }
        await dead.close();
        const locks = await Promise.all([
          there.lock('a', { ...read, wait: '9s' }),
          there.lock('b', { permits: 2, wait: '9s' }),
        ]);
        expect(locks.map(({ isHeld }) => isHeld)).toEqual([true, true]);
      }, 15_000);
    });

    describe('semaphores', () => {
      const permits = { permits: 3 };

      it('a semaphore lets in as many as it has permits, over all processes, and no more', async () => {
        const locks = await Promise.all([here.lock(KEY, permits), there.lock(KEY, permits), here.lock(KEY, permits)]);
        expect(locks.map(({ mode }) => mode)).toEqual(['permit', 'permit', 'permit']);
        for (const who of [here, there]) expect(await who.tryLock(KEY, permits)).toBeNull();
        await locks[1].unlock();
        expect(await here.tryLock(KEY, permits)).not.toBeNull();
        expect(await here.tryLock(KEY, permits)).toBeNull();
      });

      it('a permit goes to the next in the queue, first come, first served', async () => {
        const line = new Line(backing, KEY);
        const locks = [await here.lock(KEY, permits), await here.lock(KEY, permits), await there.lock(KEY, permits)];
        const waiting = [];
        for (const [index, who] of [there, here, there, here].entries())
          waiting.push(await line.join(who, permits, String(index)));
        await locks[0]!.unlock();
        await waiting[0]!.lock;
        expect(line.entered).toEqual(['0']);
        await Promise.all([locks[1]!.unlock(), locks[2]!.unlock()]);
        await Promise.all([waiting[1]!.lock, waiting[2]!.lock]);
        expect([...line.entered].sort()).toEqual(['0', '1', '2']);
        await (await waiting[0]!.lock).unlock();
        await waiting[3]!.lock;
        for (const { lock } of waiting.slice(1)) await (await lock).unlock();
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('permits of crashed holders become free, whatever the others renew', async () => {
        const renewing = await here.lock(KEY, { ...permits, lease: 3000 });
        await there.lock(KEY, { ...permits, lease: 300, watchdog: false });
        await there.lock(KEY, { ...permits, lease: 300, watchdog: false });
        const next = await Promise.all([there.lock(KEY, permits), there.lock(KEY, permits)]);
        expect([renewing, ...next].every(({ isHeld }) => isHeld)).toBe(true);
        expect(await here.tryLock(KEY, permits)).toBeNull();
      });

      it('another number of permits is refused while somebody has a permit', async () => {
        const lock = await here.lock(KEY, permits);
        await expect(there.lock(KEY, { permits: 2 })).rejects.toHaveProperty(
          'detail',
          expect.stringMatching(/"permits" is 2, but those who hold lock "account:1" now were given one of 3/),
        );
        await expect(there.tryLock(KEY, { permits: 4 })).rejects.toBeInstanceOf(LockOptionsError);
        await lock.unlock();
        expect(await there.tryLock(KEY, { permits: 2 })).not.toBeNull();
      });

      it('a call that is refused for its number of permits keeps none of its other keys', async () => {
        await here.lock('b', permits);
        await expect(there.lock(['a', 'b'], { permits: 1, lease: '30s' })).rejects.toBeInstanceOf(LockOptionsError);
        expect((await here.lock('a', { wait: 500 })).isHeld).toBe(true);
      });

      it('another number of permits is refused also when the number changes while the caller waits', async () => {
        const first = await here.lock('b');
        const next = here.lock('b', permits);
        await backing.waiters('b', 1);
        const call = there.lock(['a', 'b'], { permits: 1, lease: '30s' });
        await backing.waiters('b', 2);
        await first.unlock();
        await next;
        await expect(call).rejects.toBeInstanceOf(LockOptionsError);
        await backing.waiters('b', 0);
        expect((await here.lock('a', { wait: 500 })).isHeld).toBe(true);
      });

      it('a semaphore excludes callers that want an exclusive lock', async () => {
        const lock = await here.lock(KEY, permits);
        expect(await there.tryLock(KEY)).toBeNull();
        expect(await there.tryLock(KEY, read)).toBeNull();
        const alone = there.lock(KEY);
        await backing.waiters(KEY, 1);
        expect(await here.tryLock(KEY, permits)).toBeNull();
        await lock.unlock();
        expect((await alone).isHeld).toBe(true);
      });

      it.each([
        [{ permits: 0 }],
        [{ permits: 1.5 }],
        [{ permits: '3' }],
        [{ permits: 3, mode: 'read' }],
        [{ mode: 'shared' }],
        [{ label: '' }],
        [{ label: '\ud800' }],
        [{ atLeast: -1 }],
      ])('a shared lock refuses the options %j', async (options) => {
        await expect(here.lock(KEY, options as object)).rejects.toBeInstanceOf(LockOptionsError);
      });
    });

    describe('a store', () => {
      const command = {
        keys: [KEY],
        token: 'writer:1:x.1',
        leaseMs: 30_000,
        sharing: 'read',
        label: undefined,
        queue: false,
      } as const;

      it('nobody enters beside a writer when a copy of its command as a reader arrives late', async () => {
        const raw = store();
        expect(await raw.acquire(command)).toMatchObject({ granted: true });
        expect(await raw.upgrade(command, 1)).toMatchObject({ granted: true });
        for (const queue of [false, true]) {
          expect(await raw.acquire({ ...command, queue })).toMatchObject({ granted: true });
          expect(await there.tryLock(KEY, read)).toBeNull();
        }
      });

      it('a renewal of a lock that has to be the writer is in vain where it is a reader', async () => {
        const raw = store();
        const gone = async (upgrade: number) => (await raw.renew([{ ...command, upgrade }])).gone.length;
        await raw.acquire(command);
        expect(await gone(0)).toBe(0);
        expect(await gone(1)).toBe(1);
        await raw.upgrade(command, 2);
        expect([await gone(0), await gone(1), await gone(2), await gone(3)]).toEqual([0, 0, 0, 1]);
        await raw.downgrade(command, 2);
        expect([await gone(0), await gone(2)]).toEqual([0, 1]);
      });
    });

    describe('several keys', () => {
      it('several keys are shared together', async () => {
        const reader = await here.lock(['a', 'b'], read);
        expect((await there.lock(['b', 'c'], read)).isHeld).toBe(true);
        expect(await there.tryLock(['a', 'c'], write)).toBeNull();
        await reader.unlock();
        expect(await there.tryLock('a', write)).not.toBeNull();
      });
    });

    describe('atLeast', () => {
      it('`atLeast` keeps the key that long after short work, from everybody', async () => {
        const startedAt = performance.now();
        await here.withLock(KEY, () => undefined, { atLeast: 300 });
        expect(await here.tryLock(KEY)).toBeNull();
        expect(await there.tryLock(KEY)).toBeNull();
        const { holders } = (await there.inspect(KEY)) ?? { holders: [] };
        expect(holders.every(({ isKept }) => isKept)).toBe(true);
        expect((await there.lock(KEY)).isHeld).toBe(true);
        expect(performance.now() - startedAt).toBeGreaterThan(290);
        await until(async () => (await backing.lockKeys()).length <= 1);
      });

      it('`atLeast` does not keep a key when the work took longer', async () => {
        const lock = await here.lock(KEY, { atLeast: 50 });
        await until(() => Date.now() > lock.acquiredAt.getTime() + 60);
        expect(await lock.unlock()).toBe(true);
        expect(await there.tryLock(KEY)).not.toBeNull();
      });

      it('`atLeast` keeps the key also for a caller that took over the place of one that gave up', async () => {
        const controller = new AbortController();
        const first = await here.lock(KEY, { watchdog: false });
        const theirs = there.lock(KEY);
        await backing.waiters(KEY, 1);
        const leaves = expect(here.lock(KEY, { signal: controller.signal })).rejects.toBe('gone');
        const [job, next] = [here.lock(KEY, { atLeast: 400 }), here.lock(KEY)];
        await first.unlock();
        const between = await theirs;
        await backing.waiters(KEY, 1);
        controller.abort('gone');
        await leaves;
        await between.unlock();
        const lock = await job;
        await lock.unlock();
        await next;
        expect(Date.now() - lock.acquiredAt.getTime()).toBeGreaterThan(390);
      });

      it('`atLeast` keeps a key that is still held when the app closes, but no longer than that', async () => {
        const app = another();
        const lock = await app.lock(KEY, { lease: '30s', atLeast: 500 });
        lock.signal.addEventListener('abort', () => void lock.unlock());
        await app.close();
        expect(lock.isHeld).toBe(false);
        expect(await here.tryLock(KEY)).toBeNull();
        expect((await here.lock(KEY)).isHeld).toBe(true);
        expect(Date.now() - lock.acquiredAt.getTime()).toBeGreaterThan(490);
      });

      it('`atLeast` keeps a permit too', async () => {
        await here.withLock(KEY, () => undefined, { permits: 2, atLeast: 300 });
        const other = await there.tryLock(KEY, { permits: 2 });
        expect(await there.tryLock(KEY, { permits: 2 })).toBeNull();
        await other!.unlock();
        expect((await there.lock(KEY)).isHeld).toBe(true);
      });
    });

    describe('inspect', () => {
      it('inspect returns null for a free key', async () => {
        expect(await here.inspect(KEY)).toBeNull();
      });

      it('inspect names the holder, its time and fence, and the waiters in their order', async () => {
        const lock = await here.lock(KEY, { label: 'nightly report. ünï 50%' });
        const waiting = [
          there.lock(KEY, { label: 'second', fair: true }),
          there.lock(KEY, { mode: 'read' }),
          there.lock(KEY, { permits: 2, label: 'last/one' }),
        ];
        await backing.waiters(KEY, 3);
        const info = (await there.inspect(KEY))!;
        expect(info).toMatchObject({ key: KEY, mode: 'exclusive', permits: undefined, holders: [info.holder] });
        expect(info.holder).toMatchObject({
          token: lock.token,
          pid: process.pid,
          fence: lock.fence,
          since: lock.acquiredAt,
          label: 'nightly report. ünï 50%',
        });
        expect(`${info.holder.host}:${info.holder.pid}:${info.holder.instance}.`).toBe(
          lock.token.slice(0, lock.token.lastIndexOf('.') + 1),
        );
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

      it('inspect names all readers, and all holders of a permit', async () => {
        const readers = [await here.lock(KEY, { ...read, label: 'one' }), await there.lock(KEY, read)];
        // A process that has just begun to listen may miss the first question.
        await until(async () => (await here.inspect(KEY))!.holders.every(({ fence }) => fence !== undefined));
        const info = (await here.inspect(KEY))!;
        expect(info).toMatchObject({ mode: 'read', permits: undefined });
        expect(info.holders.map(({ token, fence }) => [token, fence]).sort()).toEqual(
          readers.map(({ token, fence }) => [token, fence]).sort(),
        );
        const permit = await here.lock('a', { permits: 7 });
        expect(await there.inspect('a')).toMatchObject({ mode: 'permit', permits: 7, holder: { fence: permit.fence } });
      });

      it('inspect knows the lock of its own process, though that has never waited', async () => {
        const lock = (await here.tryLock(KEY, { label: 'job' }))!;
        expect((await here.inspect(KEY))?.holder).toMatchObject({
          fence: lock.fence,
          since: lock.acquiredAt,
          label: 'job',
        });
      });

      it('inspect knows the lock of another process the first time it asks', async () => {
        const first = await there.lock(KEY);
        const waiting = here.lock(KEY, { label: 'job' });
        await backing.waiters(KEY, 1); // so the process of the holder hears
        await first.unlock();
        const lock = await waiting;
        expect((await another().inspect(KEY))?.holder).toMatchObject({
          fence: lock.fence,
          since: lock.acquiredAt,
          label: 'job',
        });
      });

      it('inspect does not acquire, renew or release anything', async () => {
        const lock = await here.lock(KEY, { ...read, lease: 200, watchdog: false });
        while (lock.isHeld) await here.inspect(KEY);
        await until(async () => (await here.inspect(KEY)) === null, 1500);
      });
    });

    describe('forceUnlock', () => {
      it('forceUnlock is reported to the holder at once, and lets the next caller in', async () => {
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

      it('forceUnlock releases a shared key from all its holders', async () => {
        for (const terms of [read, { permits: 2 }]) {
          const locks = [
            await here.lock(KEY, { ...terms, lease: '30s' }),
            await there.lock(KEY, { ...terms, lease: '30s' }),
          ];
          const lost = locks.map(({ signal }) => aborted(signal));
          expect(await here.forceUnlock(KEY)).toBe(true);
          expect(await Promise.all(lost)).toMatchObject([{ reason: 'taken' }, { reason: 'taken' }]);
          expect(await here.isLocked(KEY)).toBe(false);
        }
        expect(await backing.lockKeys()).toEqual([]);
      });

      it('forceUnlock releases a shared key from one of its holders, by its token', async () => {
        for (const terms of [read, { permits: 2 }]) {
          await using stays = await there.lock(KEY, { ...terms, lease: '30s' });
          const lock = await here.lock(KEY, { ...terms, lease: '30s' });
          expect(await there.forceUnlock(KEY, { token: lock.token })).toBe(true);
          expect(await aborted(lock.signal)).toMatchObject({ reason: 'taken' });
          expect(await there.forceUnlock(KEY, { token: lock.token })).toBe(false);
          await stays.extend();
          expect(stays.isHeld).toBe(true);
        }
      });
    });
  });
}
