import { beforeEach, describe, expect, it } from '@jest/globals';
import type { ListedHolder, ListedLock, ListedWaiters, LockList } from 'nest-redis-lock';
import { LockChanges } from '../../lib/cli/watch/lock-changes.js';
import type { Stored } from '../../lib/cli/watch/look.js';

const KEY = 'account:42';
const [FIRST, SECOND] = ['aaaaaaaaaaaaaaaa', 'bbbbbbbbbbbbbbbb'];
/** The time between two looks. */
const SINCE_MS = 1000;

const token = (instance: string): string => `api:1:${instance}.1`;

function holder(
  instance: string | undefined,
  fence: number | undefined,
  given: Partial<ListedHolder> = {},
): ListedHolder {
  const isKnown = fence !== undefined;
  const caller = { label: undefined, method: undefined, template: undefined, traceparent: undefined };
  return {
    ...{ token: undefined, host: 'api', pid: 1, instance, fence, ...caller, isKept: false, remaining: 9000 },
    ...{ since: isKnown ? new Date() : undefined, heldMs: isKnown ? 10 : undefined },
    ...given,
  };
}

/** What only the store says of a holder. */
const unclaimed = (instance: string): ListedHolder => holder(instance, undefined, { token: token(instance) });

/** One whose work is done, and whose key `atLeast` keeps. */
const keptBy = (instance: string): ListedHolder =>
  holder(instance, undefined, { token: `${token(instance)} kept`, isKept: true });

const waiters = (instance: string, callers: number): ListedWaiters => ({
  ...{
    host: 'api',
    pid: 2,
    instance,
    label: undefined,
    method: undefined,
    template: undefined,
    traceparent: undefined,
  },
  ...{ mode: 'exclusive', permits: undefined, callers, since: new Date(), waitedMs: 5 },
});

const lock = (holders: ListedHolder[], groups: ListedWaiters[] = [], given: Partial<ListedLock> = {}): ListedLock => ({
  ...{ key: KEY, mode: 'exclusive', permits: undefined, holders, holderCount: holders.length, waiters: groups },
  waiterCount: groups.reduce((sum, { callers }) => sum + callers, 0),
  ...given,
});

const silent = (instance: string): LockList['unreached'][number] => ({
  ...{ what: 'process', name: 'api:1', host: 'api', pid: 1, instance, reason: 'silent' },
  message: 'The process api:1 did not answer.',
});
const noServer: LockList['unreached'][number] = {
  what: 'server',
  name: 'redis',
  reason: 'unavailable',
  message: 'Down.',
};

describe('The changes between two looks', () => {
  let changes: LockChanges;
  let stored: Stored | Error;
  let asked: number;
  let looks: number;

  beforeEach(() => {
    [asked, looks, stored] = [0, 0, []];
    changes = new LockChanges(async () => {
      asked++;
      if (stored instanceof Error) throw stored;
      return stored;
    });
  });

  /** Takes a look, and returns what it tells. */
  async function look(
    locks: ListedLock[],
    {
      unreached = [],
      live = [FIRST, SECOND],
      total = locks.length,
    }: Partial<LockList> & { live?: string[] | 'unknown' } = {},
  ): Promise<string[]> {
    const sinceMs = looks++ === 0 ? 0 : SINCE_MS;
    const told = await changes.next({
      list: { locks, total, unreached },
      live: live === 'unknown' ? undefined : new Set(live),
      sinceMs,
    });
    return told.map((change) => {
      if ('what' in change) return `${change.event} ${change.name}`;
      if (change.event === 'waiting') return `waiting ${change.before} → ${change.waiterCount}`;
      return `${change.event} ${change.holder.fence ?? change.holder.token}`;
    });
  }

  it('tells what is held at first, then who comes, goes and waits; and nothing when nothing changes', async () => {
    expect(await look([lock([holder(FIRST, 1)])])).toEqual(['held 1']);
    expect(await look([lock([holder(FIRST, 1, { heldMs: 500 })])])).toEqual([]);
    expect(await look([lock([holder(FIRST, 1)], [waiters(SECOND, 2)])])).toEqual(['waiting 0 → 2']);
    expect(await look([lock([holder(SECOND, 2)], [waiters(SECOND, 1)])])).toEqual([
      'ended 1',
      'acquired 2',
      'waiting 2 → 1',
    ]);
    expect(await look([])).toEqual(['ended 2', 'waiting 1 → 0']);
    expect(await look([])).toEqual([]);
    expect(asked).toBe(0);
  });

  it('tells of a caller that has acquired the key again, in the same process', async () => {
    await look([lock([holder(FIRST, 1)])]);
    expect(await look([lock([holder(FIRST, 5)])])).toEqual(['ended 1', 'acquired 5']);
  });

  it('tells of each of those that share a key', async () => {
    const readers = (...fences: number[]) =>
      lock(
        fences.map((fence) => holder(FIRST, fence)),
        [],
        { mode: 'read' },
      );
    await look([readers(1, 2)]);
    expect(await look([readers(2, 3)])).toEqual(['ended 1', 'acquired 3']);
  });

  it('calls a lock that is older than the last look held, not acquired', async () => {
    await look([], { unreached: [silent(FIRST)] });
    expect(await look([lock([holder(FIRST, 1, { heldMs: 60_000 })])])).toEqual(['reached api:1', 'held 1']);
  });

  it('a process that does not answer keeps its locks and waiters, as long as Redis has them', async () => {
    await look([lock([holder(FIRST, 1)], [waiters(FIRST, 2)])]);
    stored = [{ token: token(FIRST), leaseLeftMs: 5000 }];
    expect(await look([], { unreached: [silent(FIRST)] })).toEqual(['unreached api:1']);
    expect(await look([lock([unclaimed(FIRST)], [waiters(SECOND, 1)])], { unreached: [silent(FIRST)] })).toEqual([
      'waiting 2 → 3',
    ]);
    expect(await look([lock([holder(FIRST, 1)], [waiters(FIRST, 2), waiters(SECOND, 1)])])).toEqual(['reached api:1']);
    stored = [];
    expect(await look([], { unreached: [silent(FIRST)] })).toEqual(['unreached api:1', 'ended 1', 'waiting 3 → 2']);
  });

  it('a lock of a process that has died is orphaned until Redis has it no more', async () => {
    await look([lock([holder(FIRST, 1)])]);
    stored = [{ token: token(FIRST), leaseLeftMs: 5000 }];
    expect(await look([], { live: [SECOND] })).toEqual(['orphaned 1']);
    expect(await look([], { live: [SECOND] })).toEqual([]);
    expect(await look([lock([unclaimed(FIRST)], [waiters(SECOND, 1)])], { live: [SECOND] })).toEqual(['waiting 0 → 1']);
    expect(await look([lock([holder(SECOND, 2)])], { live: [SECOND] })).toEqual([
      'ended 1',
      'acquired 2',
      'waiting 1 → 0',
    ]);
  });

  it('a lock of a process that has died is orphaned also while others wait for it, and stays what it was', async () => {
    const queue = [waiters(SECOND, 1)];
    await look([lock([holder(FIRST, 1, { label: 'payout' })], queue)]);
    expect(await look([lock([unclaimed(FIRST)], queue)], { live: [SECOND] })).toEqual(['orphaned 1']);
    expect(await look([lock([unclaimed(FIRST)], queue)], { live: [SECOND] })).toEqual([]);
    expect(await look([lock([holder(SECOND, 2)])], { live: [SECOND] })).toContain('ended 1');
  });

  it('a lock that is orphaned when it is seen for the first time is told as held, and orphaned', async () => {
    const queue = [waiters(SECOND, 1)];
    expect(await look([lock([unclaimed(FIRST)], queue)], { live: [SECOND] })).toEqual([
      `held ${token(FIRST)}`,
      `orphaned ${token(FIRST)}`,
      'waiting 0 → 1',
    ]);
  });

  it('while not all can be asked who is alive, nobody is dead', async () => {
    await look([lock([holder(FIRST, 1)])]);
    stored = [{ token: token(FIRST), leaseLeftMs: 5000 }];
    expect(await look([], { unreached: [silent(FIRST)], live: 'unknown' })).toEqual(['unreached api:1']);
    expect(await look([], { live: 'unknown' })).toEqual(['reached api:1']);
    expect(await look([], { live: [SECOND] })).toEqual(['orphaned 1']);
  });

  it('a process that has ended and released before is not orphaned', async () => {
    await look([lock([holder(FIRST, 1)])]);
    expect(await look([], { live: [SECOND] })).toEqual(['ended 1']);
  });

  it('a key that `atLeast` keeps has no holder any more, whether its process has ended or not', async () => {
    await look([lock([holder(FIRST, 1)])]);
    stored = [{ token: `${token(FIRST)} kept`, leaseLeftMs: 5000 }];
    expect(await look([], { live: [SECOND] })).toEqual(['ended 1']);
  });

  it('what `atLeast` keeps, which is listed while others wait, hides neither who ends nor who comes', async () => {
    const permits = { mode: 'permit', permits: 2 } as const;
    const queue = [waiters(SECOND, 1)];
    expect(await look([lock([holder(FIRST, 1)], queue, permits)])).toEqual(['held 1', 'waiting 0 → 1']);
    expect(await look([lock([holder(FIRST, 2), keptBy(FIRST)], queue, permits)])).toEqual(['ended 1', 'acquired 2']);
    expect(await look([lock([keptBy(FIRST), keptBy(FIRST)], queue, permits)])).toEqual(['ended 2']);
    expect(await look([lock([holder(FIRST, 3), keptBy(FIRST)], queue, permits)])).toEqual(['acquired 3']);
    expect(await look([lock([holder(FIRST, 3)], [], permits)])).toEqual(['waiting 1 → 0']);
  });

  it('a key that `atLeast` keeps is no lock, whoever comes and goes to wait for it', async () => {
    const kept = lock([keptBy(FIRST)], [waiters(SECOND, 1)]);
    expect(await look([lock([holder(FIRST, 1)])])).toEqual(['held 1']);
    expect(await look([])).toEqual(['ended 1']);
    expect(await look([kept])).toEqual(['waiting 0 → 1']);
    expect(await look([])).toEqual(['waiting 1 → 0']);
    expect(await look([kept], { live: [SECOND] })).toEqual(['waiting 0 → 1']);
    expect(asked).toBe(0);
  });

  it('a process that does not answer keeps its lock beside what `atLeast` keeps of another', async () => {
    await look([lock([holder(FIRST, 2)], [], { mode: 'permit', permits: 2 })]);
    stored = [
      { token: `${token(FIRST)} kept`, leaseLeftMs: 5000 },
      { token: `api:1:${FIRST}.2`, leaseLeftMs: 5000 },
    ];
    expect(await look([], { unreached: [silent(FIRST)] })).toEqual(['unreached api:1']);
  });

  it('a holder has the fields of a listed one, and no others', async () => {
    const fields = Object.keys(unclaimed(FIRST)).sort();
    const queue = lock([unclaimed(FIRST)], [waiters(SECOND, 1)]);
    const told = [];
    for (const [locks, live] of [
      [[queue], [FIRST, SECOND]],
      [[queue], [SECOND]],
      [[], [SECOND]],
    ] as const)
      told.push(
        ...(await changes.next({
          list: { locks, total: locks.length, unreached: [] },
          live: new Set(live),
          sinceMs: 0,
        })),
      );
    const ofHolders = told.flatMap((change) => ('holder' in change ? [change] : []));
    expect(ofHolders.map(({ event }) => event)).toEqual(['held', 'orphaned', 'ended']);
    for (const { holder } of ofHolders) expect(Object.keys(holder).sort()).toEqual(fields);
  });

  it('a holder that only Redis knows has ended when Redis says so, not when nobody waits any more', async () => {
    const other = holder(undefined, undefined, { token: 'another tool', host: undefined, pid: undefined });
    stored = [{ token: 'another tool', leaseLeftMs: 5000 }];
    expect(await look([])).toEqual([]);
    expect(await look([lock([other], [waiters(SECOND, 1)])])).toEqual(['held another tool', 'waiting 0 → 1']);
    expect(await look([])).toEqual(['waiting 1 → 0']);
    stored = [];
    expect(await look([])).toEqual(['ended another tool']);
  });

  it('while a server can not be reached, or too many keys are there, what is missing goes on', async () => {
    await look([lock([holder(FIRST, 1)], [waiters(SECOND, 2)])]);
    stored = new Error('no connection');
    expect(await look([], { unreached: [noServer], live: [] })).toEqual(['unreached redis']);
    expect(await look([], { unreached: [noServer], live: [] })).toEqual([]);
    stored = [{ token: token(FIRST), leaseLeftMs: 5000 }];
    expect(await look([], { total: 1 })).toEqual(['reached redis']);
    expect(await look([])).toEqual(['ended 1', 'waiting 2 → 0']);
  });

  it('says so when the reason changes why something can not be reached, and when it can be again', async () => {
    expect(await look([], { unreached: [noServer] })).toEqual(['unreached redis']);
    expect(await look([], { unreached: [{ ...noServer, reason: 'unsubscribed' }] })).toEqual(['unreached redis']);
    expect(await look([])).toEqual(['reached redis']);
  });

  it('another holder of an exclusive key ends the lock of one that does not answer', async () => {
    await look([lock([holder(FIRST, 1)])]);
    expect(await look([lock([holder(SECOND, 2)])], { unreached: [silent(FIRST)] })).toEqual([
      'unreached api:1',
      'ended 1',
      'acquired 2',
    ]);
  });
});
