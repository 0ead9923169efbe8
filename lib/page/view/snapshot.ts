import { MOST_CALLS } from '../../core/list/calls-question.js';
import { MOST_HOT_KEYS, MOST_LOSSES } from '../activity/report-limits.js';
import type { FilteredPast } from '../activity/process-report.js';
import type { Cut, HeldRow, KeyView, PageSnapshot, ProcessRow, ServerState, Totals } from '../page-snapshot.js';
import { sourcesOf, waitersIn, type StoredRows } from './doubtful.js';
import { longestCalls, type CallsOfProcess } from './longest-calls.js';
import type { KnownProcess } from './process-book.js';
import { callerOf, heldRows, hotKeyRows, isSilent, lossRows, mayBeHeld, waitingRows } from './rows.js';
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
  /** The holders of keys of which the processes say too little. */
  readonly doubtful: StoredRows;
}

/** The parts of a snapshot that are the same for all who look. */
export type CommonParts = Omit<PageSnapshot, 'filter' | 'held' | 'waiting' | 'hotKeys' | 'losses' | 'key'> & {
  readonly byReason: Readonly<Record<string, number>>;
  readonly waitersOf: (key: string) => number;
  readonly doubtful: StoredRows;
  /** The processes that have answered just now. */
  readonly answering: ReadonlySet<string>;
};

/** Puts together what is the same for all who look. */
export function commonParts({ at, module, actions, own, server, processes, times, doubtful }: Moment): CommonParts {
  return {
    at,
    module,
    actions,
    server,
    totals: totalsOf(processes, doubtful),
    labels: times.labels(at),
    slots: times.slots(at),
    processes: processes.map((process) => processRow(process, own)),
    waitGraph: waitGraphOf(processes.flatMap(graphCalls)),
    byReason: lostByReason(processes),
    waitersOf: waitersIn(processes),
    answering: sourcesOf(processes),
    doubtful,
  };
}

/** What one viewer looks at. */
export interface ViewRows {
  readonly filter: string;
  /** What the processes say for the filter. */
  readonly calls: readonly CallsOfProcess[];
  readonly past: readonly { readonly process: KnownProcess; readonly part: FilteredPast }[];
  readonly key: KeyView | null;
}

/** Puts together a snapshot for one view. */
export function snapshotOf(
  { byReason, waitersOf, doubtful, answering, ...common }: CommonParts,
  { filter, calls, past, key }: ViewRows,
): PageSnapshot {
  const waiting = longestCalls(calls, 'waiting').flatMap(({ process, call }) => waitingRows(process, call));
  const held = longestCalls(
    calls.filter(({ process }) => answering.has(process.source)),
    'held',
  ).flatMap(({ process, call }) => heldRows(process, call, waitersOf));
  const named = calls
    .filter(({ process }) => !answering.has(process.source))
    .flatMap(({ process, part }) => part.held.items.flatMap((call) => heldRows(process, call, waitersOf)));
  // The store knows better what a silent process holds.
  const silent = named.filter((row) => !doubtful.has(row.key) && mayBeHeld(row));
  const others = doubtful.size > 0 ? storedRows(doubtful, calls) : [];
  const losses = past.flatMap(({ process, part }) => part.losses.flatMap((loss) => lossRows(process, loss)));
  const total = (of: 'held' | 'waiting'): number => calls.reduce((sum, { part }) => sum + part[of].total, 0);
  return {
    ...common,
    filter,
    // Nobody knows since when those are held that no process claims: they are in doubt, so they come first.
    held: cut(
      [...others, ...silent, ...held].sort((a, b) => (b.heldMs ?? Infinity) - (a.heldMs ?? Infinity)),
      total('held') + others.length + silent.length - named.length,
    ),
    waiting: cut(waiting, total('waiting')),
    hotKeys: hotKeyRows(
      past.flatMap(({ part }) => part.hotKeys),
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

/** What the store says of keys that are in a view. */
function storedRows(doubtful: StoredRows, calls: ViewRows['calls']): HeldRow[] {
  const named = calls.flatMap(({ part: { held, waiting } }) => [...held.items, ...waiting.items]);
  const keys = new Set(named.flatMap(({ keys }) => keys));
  return [...doubtful].flatMap(([key, rows]) => (keys.has(key) ? rows : []));
}

/** Cuts rows off. A lock of several keys may make more rows than were counted. */
const cut = <Row>(rows: readonly Row[], total: number): Cut<Row> => ({
  total: Math.max(total, rows.length),
  items: rows.slice(0, MOST_CALLS),
});

function totalsOf(processes: readonly KnownProcess[], doubtful: StoredRows): Totals {
  const sum = (of: (process: KnownProcess) => number | undefined): number =>
    processes.reduce((sum, process) => sum + (of(process) ?? 0), 0);
  return {
    held: sum(({ calls, silentMs }) => (silentMs > 0 ? 0 : calls?.held)) + [...doubtful.values()].flat().length,
    waiting: sum(({ calls }) => calls?.waiting),
    acquiredPerSecond: rounded(sum(acquiredPerSecond)),
    lostInLastHour: sum(({ report }) => lost(report)),
    processes: processes.length,
  };
}

function processRow(process: KnownProcess, own: string): ProcessRow {
  const { source, host, pid, calls, report, silentMs } = process;
  return {
    id: source,
    host,
    pid,
    isThis: source === own,
    hasPage: report !== undefined,
    isSilent: isSilent(process),
    silentMs,
    uptimeMs: report ? report.uptimeMs + silentMs : null,
    held: calls?.held ?? null,
    waiting: calls?.waiting ?? null,
    acquiredPerSecond: report ? rounded(acquiredPerSecond(process)) : null,
    lostInLastHour: report ? lost(report) : null,
    leaseMargin: report?.leaseMargin ?? null,
  };
}

function graphCalls(process: KnownProcess): GraphCall[] {
  return (process.calls?.nested ?? []).map((call) => ({
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
    for (const [reason, count] of Object.entries(report?.lostByReason ?? {}))
      sums.set(reason, (sums.get(reason) ?? 0) + count);
  return Object.fromEntries(sums);
}

const lost = (report: KnownProcess['report']): number =>
  Object.values(report?.lostByReason ?? {}).reduce((sum, count) => sum + count, 0);

const acquiredPerSecond = ({ report, silentMs }: KnownProcess): number =>
  silentMs > 0 ? 0 : (report?.acquiredPerSecond ?? 0);

const rounded = (perSecond: number): number => Math.round(perSecond * 10) / 10;
