import { MOST_HOT_KEYS, MOST_LOSSES, MOST_ROWS } from '../activity/report-limits.js';
import type { FilteredRows } from '../activity/process-report.js';
import type { Cut, KeyView, PageSnapshot, ProcessRow, ServerState, Totals } from '../page-snapshot.js';
import type { KnownProcess } from './process-book.js';
import { callerOf, heldRows, hotKeyRows, lossRows, waitingRows } from './rows.js';
import type { TimesBook } from './times-book.js';
import { waitGraphOf, type GraphCall } from './wait-graph.js';

/** What all views of one moment have in common. */
export interface Moment {
  /** The time of day, in ms. */
  readonly at: number;
  readonly module: string;
  readonly actions: boolean;
  readonly own: string;
  readonly server: ServerState;
  readonly processes: readonly KnownProcess[];
  readonly times: TimesBook;
}

/** The parts of a snapshot that are the same for all who look. */
export type CommonParts = Omit<PageSnapshot, 'filter' | 'held' | 'waiting' | 'hotKeys' | 'losses' | 'key'> & {
  readonly byReason: Readonly<Record<string, number>>;
  readonly waitersOf: (key: string) => number;
};

/** Puts together what is the same for all who look. */
export function commonParts({ at, module, actions, own, server, processes, times }: Moment): CommonParts {
  const queues = new Map<string, number>();
  for (const { report } of processes)
    for (const [key, waiting] of report.queues) queues.set(key, (queues.get(key) ?? 0) + waiting);
  return {
    at,
    module,
    actions,
    server,
    totals: totalsOf(processes),
    labels: times.labels(at),
    slots: times.slots(at),
    processes: processes.map((process) => processRow(process, own)),
    waitGraph: waitGraphOf(processes.flatMap(graphCalls)),
    byReason: lostByReason(processes),
    waitersOf: (key) => queues.get(key) ?? 0,
  };
}

/** What one viewer looks at. */
export interface ViewRows {
  readonly filter: string;
  /** What each process reports for the filter. */
  readonly rows: readonly { readonly process: KnownProcess; readonly rows: FilteredRows }[];
  readonly key: KeyView | null;
}

/** Puts together a snapshot for one view. */
export function snapshotOf(
  { byReason, waitersOf, ...common }: CommonParts,
  { filter, rows, key }: ViewRows,
): PageSnapshot {
  const held = rows.flatMap(({ process, rows }) =>
    rows.held.items.flatMap((call) => heldRows(process, call, waitersOf)),
  );
  const waiting = rows.flatMap(({ process, rows }) => rows.waiting.items.flatMap((call) => waitingRows(process, call)));
  const losses = rows.flatMap(({ process, rows }) => rows.losses.flatMap((loss) => lossRows(process, loss)));
  const total = (of: 'held' | 'waiting'): number => rows.reduce((sum, { rows }) => sum + rows[of].total, 0);
  return {
    ...common,
    filter,
    held: cut(
      held.sort((a, b) => b.heldMs! - a.heldMs!),
      total('held'),
    ),
    waiting: cut(
      waiting.sort((a, b) => b.waitingMs - a.waitingMs),
      total('waiting'),
    ),
    hotKeys: hotKeyRows(
      rows.flatMap(({ rows }) => rows.hotKeys),
      MOST_HOT_KEYS,
    ),
    losses: {
      total: common.totals.lostInLastHour,
      byReason,
      items: losses.sort((a, b) => a.agoMs - b.agoMs).slice(0, MOST_LOSSES),
    },
    key,
  };
}

/** Cuts rows off. A lock of several keys may make more rows than were counted. */
const cut = <Row>(rows: readonly Row[], total: number): Cut<Row> => ({
  total: Math.max(total, rows.length),
  items: rows.slice(0, MOST_ROWS),
});

function totalsOf(processes: readonly KnownProcess[]): Totals {
  const sum = (of: (process: KnownProcess) => number): number =>
    processes.reduce((sum, process) => sum + of(process), 0);
  return {
    held: sum(({ report }) => report.held),
    waiting: sum(({ report }) => report.waiting),
    acquiredPerSecond: rounded(sum(({ report }) => report.acquiredPerSecond)),
    lostInLastHour: sum(({ report }) => lost(report.lostByReason)),
    processes: processes.length,
  };
}

function processRow({ source, host, pid, report, silentMs }: KnownProcess, own: string): ProcessRow {
  return {
    id: source,
    host,
    pid,
    isThis: source === own,
    silentMs,
    uptimeMs: report.uptimeMs + silentMs,
    held: report.held,
    waiting: report.waiting,
    acquiredPerSecond: silentMs > 0 ? 0 : rounded(report.acquiredPerSecond),
    lostInLastHour: lost(report.lostByReason),
    leaseMargin: report.leaseMargin ?? null,
  };
}

function graphCalls(process: KnownProcess): GraphCall[] {
  return process.report.waitingHolders.map((call) => ({
    ...callerOf(process, call),
    id: `${process.source}#${call.id}`,
    mode: call.mode,
    holds: call.holds ?? [],
    waitsFor: call.keys,
    waitingMs: call.ms + process.silentMs,
  }));
}

function lostByReason(processes: readonly KnownProcess[]): Record<string, number> {
  const sums = new Map<string, number>();
  for (const { report } of processes)
    for (const [reason, count] of Object.entries(report.lostByReason))
      sums.set(reason, (sums.get(reason) ?? 0) + count);
  return Object.fromEntries(sums);
}

const lost = (byReason: Readonly<Record<string, number>>): number =>
  Object.values(byReason).reduce((sum, count) => sum + count, 0);

const rounded = (perSecond: number): number => Math.round(perSecond * 10) / 10;
