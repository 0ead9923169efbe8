import type { HeldRow, KeyView, PageSnapshot, WaitingRow } from '../../lib/page/page-snapshot.js';

/** A snapshot of an app in which nothing happens. */
export const QUIET: PageSnapshot = {
  at: Date.UTC(2026, 10, 23, 3, 12, 44),
  module: 'default',
  actions: false,
  filter: '',
  server: { isUp: true, up: 1, of: 1, errors: [], problems: [], checkedAgoMs: 2_000, downForMs: null, unreached: [] },
  totals: { held: 0, waiting: 0, acquiredPerSecond: 0, lostInLastHour: 0, processes: 1 },
  held: { total: 0, items: [] },
  waiting: { total: 0, items: [] },
  labels: { total: 0, items: [] },
  slots: { stepMs: 10_000, count: 0, startsAt: [] },
  hotKeys: [],
  losses: { total: 0, byReason: {}, items: [] },
  processes: [
    {
      ...{ id: 'api-1:4711:a', host: 'api-1', pid: 4711, isThis: true, hasPage: true, uptimeMs: 60_000 },
      ...{ isSilent: false, silentMs: 0, held: 0, waiting: 0, acquiredPerSecond: 0, lostInLastHour: 0 },
      leaseMargin: { ms: 19_500, shareOfLease: 0.65 },
    },
  ],
  waitGraph: { calls: { total: 0, items: [] }, edges: [], cycles: [] },
  key: null,
};

const CALLER = {
  ...{ label: 'Accounts.withdraw', template: 'account:<id>', method: 'Accounts.withdraw' },
  ...{ process: 'api-1:4711:a', host: 'api-1', pid: 4711, traceId: '4bf92f3577b34da6a3ce929d0e0e4736' },
};

export function holding(key: string, more: Partial<HeldRow> = {}): HeldRow {
  return {
    ...{ key, keyLength: key.length, mode: 'exclusive', heldMs: 192_000, leaseLeftMs: 21_000, fence: 7, waiters: 0 },
    ...{ ...CALLER, tokenHash: null, isOverdue: false, isSilent: false, isKept: false, ...more },
  };
}

export function waitingFor(key: string, more: Partial<WaitingRow> = {}): WaitingRow {
  return {
    ...{ key, keyLength: key.length, mode: 'exclusive', waitingMs: 60_000, place: null, holds: [] },
    ...{ ...CALLER, ...more },
  };
}

/** A snapshot with these rows, and the totals that they make. */
export function withRows(held: readonly HeldRow[], waiting: readonly WaitingRow[] = []): PageSnapshot {
  return {
    ...QUIET,
    totals: { ...QUIET.totals, held: held.length, waiting: waiting.length },
    held: { total: held.length, items: held },
    waiting: { total: waiting.length, items: waiting },
  };
}

export function viewOf(key: string, holders: readonly HeldRow[], waiters: readonly WaitingRow[] = []): KeyView {
  return {
    ...{ key, keyLength: key.length, isHeld: holders.length > 0, mode: 'exclusive', permits: null },
    holders: { total: holders.length, items: holders },
    waiters: { total: waiters.length, items: waiters.map((waiter, index) => ({ ...waiter, place: index + 1 })) },
    history: [
      { ...CALLER, agoMs: 5_000, type: 'queued', fence: null, waitedMs: 0, heldMs: null, detail: null },
      { ...CALLER, agoMs: 192_000, type: 'acquired', fence: 7, waitedMs: 12, heldMs: null, detail: null },
      { ...CALLER, agoMs: 193_000, type: 'lost', fence: 6, waitedMs: null, heldMs: 30_000, detail: 'expired' },
    ],
  };
}

/** Something in every view: a deadlock, a second one that waits for it, plots, losses, a problem of the server. */
export function busySnapshot(): PageSnapshot {
  const held = ['account:42', '<img src=x onerror=alert(1)>', `tenant:${'0b9d5c1e-2f4a:'.repeat(9)}`].map((key) =>
    holding(key, { waiters: 1, isOverdue: true }),
  );
  const startsAt = Array.from({ length: 60 }, (_, index) => QUIET.at - (59 - index) * 10_000);
  const p50 = startsAt.map((_, index) => (index % 7 === 0 ? null : 10 + index));
  const times = { count: 60, sum: 2_400, p50: 40, p99: 400, series: { p50, p99: p50.map((ms) => ms && ms * 10) } };
  const call = (id: string, holds: string, waitsFor: string) => ({
    ...{ ...CALLER, id, holds: [holds], waitsFor: [waitsFor], waitingMs: 4_000 },
  });
  const loss = { ...CALLER, key: 'account:9', keyLength: 9, agoMs: 600_000, heldMs: 30_000, fence: 6 };
  return {
    ...withRows(
      [...held, holding('legacy:job', { ...NOBODY, heldMs: null, leaseLeftMs: null, fence: null, tokenHash: 'k1' })],
      [waitingFor('account:42', { holds: ['account:7'] }), waitingFor('account:42', { traceId: null })],
    ),
    actions: true,
    server: { ...QUIET.server, problems: ['The server evicts keys when its memory is full (maxmemory-policy).'] },
    labels: {
      total: 1,
      items: [
        {
          label: 'Accounts.withdraw',
          acquired: 60,
          timeouts: 2,
          unavailable: 0,
          aborted: 1,
          lost: 1,
          wait: times,
          hold: times,
        },
      ],
    },
    slots: { stepMs: 10_000, count: 60, startsAt },
    hotKeys: [
      { key: 'account:42', keyLength: 10, acquired: 60, timeouts: 2, waitedMs: 2_400, label: 'Accounts.withdraw' },
    ],
    losses: {
      total: 2,
      byReason: { expired: 1, forced: 1 },
      items: [
        { ...loss, reason: 'expired', by: null, why: null },
        { ...loss, key: 'account:8', reason: 'forced', by: 'ops@example.com', why: 'its worker hung' },
      ],
    },
    waitGraph: {
      calls: { total: 3, items: [call('a', 'k:1', 'k:2'), call('b', 'k:2', 'k:1'), call('c', 'k:3', 'k:1')] },
      edges: [
        { from: 'a', key: 'k:2', to: 'b', isInCycle: true },
        { from: 'b', key: 'k:1', to: 'a', isInCycle: true },
        { from: 'c', key: 'k:1', to: 'a', isInCycle: false },
      ],
      cycles: [['a', 'b']],
    },
  };
}

const NOBODY = { label: null, template: null, method: null, process: null, host: null, pid: null, traceId: null };
