import { describe, expect, it } from '@jest/globals';
import type { ListOptions, Lock, LockList } from 'nest-redis-lock';
import { until } from '../support/deferred.js';
import type { ClosableLockService } from '../support/stores/lock-services.js';
import { withTwoServices } from '../support/stores/two-services.js';
import type { Backing } from './backing.js';

/** How far apart in age locks of a list are whose order is looked at. */
const APART_MS = 250;

/** What `list` promises on every store. */
export function promisesOfLists(
  name: string,
  start: () => Promise<Backing>,
  { shares }: { readonly shares: boolean } = { shares: true },
): void {
  describe(`Lists of locks in ${name}`, () => {
    let here: ClosableLockService;
    let there: ClosableLockService;

    withTwoServices(start, (services) => ({ here, there } = services));

    /** The list, as soon as all processes can hear who asks. */
    async function listOf(options?: ListOptions): Promise<LockList> {
      const sources = [here, there].map(async ({ processes }) => (await processes.find()).sources[0]!);
      const all = (await Promise.all(sources)).sort();
      for (const { processes } of [here, there])
        await until(async () => {
          const found = await processes.find();
          return found.unreached.length === 0 && all.every((source) => found.sources.includes(source));
        });
      return here.list(options);
    }

    it('the list has what each process holds and waits for, held the longest first', async () => {
      const first = await there.lock('a', { label: 'nightly interest' });
      await until(() => Date.now() > first.acquiredAt.getTime() + 1);
      const second = await here.lock(['b', 'c']);
      const waiting = [here, there, there].map((who) => who.lock('b', { wait: '20s', label: 'payout' }));
      await until(async () => (await listOf()).locks.some(({ waiterCount }) => waiterCount === 3));
      const { locks, total, unreached } = await listOf();
      expect(unreached).toEqual([]);
      expect(total).toBe(3);
      expect(locks.map(({ key }) => key)).toEqual(['a', 'b', 'c']);
      const [a, b] = locks;
      const instanceOf = async (service: ClosableLockService) =>
        (await service.processes.find()).sources[0]!.split(':').at(-1);
      expect(a).toMatchObject({ mode: 'exclusive', permits: undefined, holderCount: 1, waiters: [], waiterCount: 0 });
      expect(a!.holders).toMatchObject([
        {
          pid: process.pid,
          instance: await instanceOf(there),
          label: 'nightly interest',
          fence: first.fence,
          since: first.acquiredAt,
          method: undefined,
          template: undefined,
        },
      ]);
      const [holder] = a!.holders;
      expect(holder!.heldMs).toBeLessThanOrEqual(Date.now() - first.acquiredAt.getTime());
      expect(holder!.remaining).toBeGreaterThan(0);
      expect(holder!.remaining).toBeLessThanOrEqual(1000);
      expect(b!.holders).toMatchObject([{ fence: second.fence, instance: await instanceOf(here) }]);
      expect(b!.waiters.map(({ label, callers, mode }) => ({ label, callers, mode }))).toEqual(
        expect.arrayContaining([
          { label: 'payout', callers: 2, mode: 'exclusive' },
          { label: 'payout', callers: 1, mode: 'exclusive' },
        ]),
      );
      for (const { since, waitedMs } of b!.waiters) expect(Date.now() - since.getTime() - waitedMs).toBeLessThan(1000);
      await second.unlock();
      for (const locked of waiting.map(async (one) => (await one).unlock())) await locked;
      await first.unlock();
      expect(await listOf()).toEqual({ locks: [], total: 0, unreached: [] });
    });

    it('a pattern, an age and a limit say what is listed; the total has the rest', async () => {
      const held: Lock[] = [];
      for (const key of ['user:1', 'user:2', 'order:1']) {
        held.push(await (held.length === 1 ? there : here).lock(key));
        // Each process says how old its locks are when it answers, and one may answer later than the other.
        await until(() => Date.now() > held.at(-1)!.acquiredAt.getTime() + APART_MS);
      }
      const keysOf = async (options: ListOptions) => {
        const { locks, total } = await listOf(options);
        return { keys: locks.map(({ key }) => key), total };
      };
      expect(await keysOf({ match: 'user:*' })).toEqual({ keys: ['user:1', 'user:2'], total: 2 });
      expect(await keysOf({ match: '*:1' })).toEqual({ keys: ['user:1', 'order:1'], total: 2 });
      expect(await keysOf({ match: 'nobody:?' })).toEqual({ keys: [], total: 0 });
      expect(await keysOf({ limit: 2 })).toEqual({ keys: ['user:1', 'user:2'], total: 3 });
      expect(await keysOf({ olderThan: '1h' })).toEqual({ keys: [], total: 0 });
      const age = Date.now() - held[1]!.acquiredAt.getTime();
      const older = await keysOf({ olderThan: age });
      expect(older.keys.slice(0, 2)).toEqual(['user:1', 'user:2']);
    });

    it('listing gives no token of a lock that others may get under it, and keeps it from nobody', async () => {
      const lock = await here.lock('a');
      const next = here.lock('a', { wait: '20s' });
      await until(async () => (await listOf()).locks[0]!.waiterCount === 1);
      const [listed] = (await listOf()).locks;
      expect(listed!.holders).toMatchObject([{ token: undefined, fence: lock.fence }]);
      const { token } = lock; // read, so it belongs to this lock
      expect((await listOf()).locks[0]!.holders).toMatchObject([{ token, fence: lock.fence }]);
      await lock.unlock();
      expect(await there.forceUnlock('a', { token })).toBe(false);
      expect((await next).isHeld).toBe(true);
    });

    if (shares)
      it('all holders of a shared key are listed, and how the waiters want it', async () => {
        const fences = await Promise.all(
          [here, there, there].map(async (who) => (await who.lock('a', { mode: 'read' })).fence),
        );
        const abort = new AbortController();
        const writer = here.lock('a', { mode: 'write', signal: abort.signal }).catch(() => undefined);
        const permit = await there.lock('b', { permits: 3 });
        await until(async () => (await listOf()).locks[0]!.waiterCount === 1);
        const { locks } = await listOf();
        const [a, b] = [locks.find(({ key }) => key === 'a')!, locks.find(({ key }) => key === 'b')!];
        expect(a).toMatchObject({ mode: 'read', permits: undefined, holderCount: 3, waiters: [{ mode: 'exclusive' }] });
        expect(a.holders.map(({ fence }) => fence).sort()).toEqual(fences.sort());
        for (const { token } of a.holders) expect(token).toEqual(expect.any(String));
        expect(b).toMatchObject({ mode: 'permit', permits: 3, holders: [{ fence: permit.fence }] });
        abort.abort();
        await writer;
      });
  });
}
