import type { KeyView as StoredKey } from '../../store/lock-store.js';
import type { HeldRow } from '../page-snapshot.js';
import { storedHolders } from './key-view.js';
import type { KnownProcess } from './process-book.js';
import { heldRows } from './rows.js';

/** Most keys that the store is asked for, once a second. */
const MOST_KEYS = 32;

/** Who holds a key by what the store says. */
export type StoredRows = ReadonlyMap<string, readonly HeldRow[]>;

/**
 * Asks the store for the keys of which the processes say too little: those that a silent process held, and those that
 * calls wait for and no process says to hold, or to share with others. A process that holds them may be stalled or
 * dead, or another tool.
 */
export async function doubtfulRows(
  processes: readonly KnownProcess[],
  inspect: (key: string) => Promise<StoredKey | undefined>,
): Promise<StoredRows> {
  const answering = sourcesOf(processes);
  const waiters = waitersIn(processes);
  const known = processes
    .filter(({ silentMs }) => silentMs > 0)
    .flatMap((process) => heldCalls(process).flatMap((call) => heldRows(process, call, waiters)));
  const keys = new Set([...waitedFor(processes), ...known.map(({ key }) => key)]);
  const rows = new Map<string, readonly HeldRow[]>();
  await Promise.all(
    [...keys].slice(0, MOST_KEYS).map(async (key) => {
      const stored = await inspect(key).catch(() => null);
      if (stored === null) return;
      const ofKey = known.filter((row) => row.key === key);
      const holders = stored ? storedHolders(stored, ofKey, { key, waiters: waiters(key), answering }) : [];
      // One that answers has just got the lock, or names others that it has held for longer.
      rows.set(
        key,
        holders.filter(({ process, isKept }) => isKept || process === null || !answering.has(process)),
      );
    }),
  );
  return rows;
}

/** The processes that have answered just now. */
export function sourcesOf(processes: readonly KnownProcess[]): ReadonlySet<string> {
  return new Set(processes.filter(({ silentMs }) => silentMs === 0).map(({ source }) => source));
}

/** Counts how many calls wait for a key, in all processes. */
export function waitersIn(processes: readonly KnownProcess[]): (key: string) => number {
  const queues = new Map<string, number>();
  for (const { calls } of processes)
    for (const [key, waiting] of calls?.queues ?? []) queues.set(key, (queues.get(key) ?? 0) + waiting);
  return (key) => queues.get(key) ?? 0;
}

const listsOf = ({ calls }: KnownProcess) => (calls ? [...calls.byText, ...calls.byKey] : []);

/** The locks that a process has named, each once. */
function heldCalls(process: KnownProcess) {
  const named = listsOf(process).flatMap(({ held }) => held.items);
  return [...new Map(named.map((call) => [`${call.fence} ${call.keys.join(' ')}`, call])).values()];
}

/** The keys that calls wait for and no answering process has for itself: those that are waited for longest first. */
function waitedFor(processes: readonly KnownProcess[]): ReadonlySet<string> {
  const lists = processes.filter(({ silentMs }) => silentMs === 0).flatMap(listsOf);
  const held = lists.flatMap((one) => one.held.items);
  const owned = new Set(held.flatMap(({ keys, mode }) => (mode === 'exclusive' ? keys : [])));
  const waiting = lists.flatMap((one) => one.waiting.items).sort((one, other) => other.ms - one.ms);
  return new Set(waiting.flatMap(({ keys }) => keys).filter((key) => !owned.has(key)));
}
