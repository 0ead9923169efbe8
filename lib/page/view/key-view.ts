import { MOST_HISTORY, MOST_ROWS } from '../activity/report-limits.js';
import type { KeyRows } from '../activity/process-report.js';
import type { Cut, HeldRow, KeyMode, KeyView, WaitingRow } from '../page-snapshot.js';
import { permitsOf, type KeyView as StoredKey, type Sharing } from '../../store/lock-store.js';
import { hostAndPid } from './host-and-pid.js';
import type { KnownProcess } from './process-book.js';
import { heldRows, keyed, keyEvent, waitingRows } from './rows.js';

/** What is known of a key. */
interface KnownKey {
  /** What the store says; null when the key is free there, undefined when that is not known. */
  readonly stored: StoredKey | null | undefined;
  readonly processes: readonly { readonly process: KnownProcess; readonly rows: KeyRows }[];
}

/** Puts together what the store and the processes know of a key. */
export function keyViewOf(key: string, { stored, processes }: KnownKey): KeyView {
  const waiting = processes.flatMap(({ process, rows }) =>
    rows.waiting.items.flatMap((call) => waitingRows(process, call).filter((row) => row.key === key)),
  );
  const held = processes.flatMap(({ process, rows }) =>
    rows.held.items.flatMap((call) => heldRows(process, call, () => waiting.length).filter((row) => row.key === key)),
  );
  const holders = stored ? storedHolders(stored, held, { key, waiters: waiting.length }) : stored === null ? [] : held;
  const waiters = inOrder(waiting, stored?.waiters.map(({ token }) => sourceOf(token)) ?? []);
  const history = processes.flatMap(({ process, rows }) => rows.history.map((event) => keyEvent(process, event)));
  return {
    ...keyed(key),
    isHeld: holders.length > 0,
    mode: stored ? modeOf(stored.sharing) : (holders[0]?.mode ?? null),
    permits: (stored && permitsOf(stored.sharing)) ?? null,
    holders: cut(holders),
    waiters: cut(waiters),
    history: history.sort((a, b) => a.agoMs - b.agoMs).slice(0, MOST_HISTORY),
  };
}

/** The holders that the store names, with what their processes say of them. */
function storedHolders(
  { holders, sharing }: StoredKey,
  held: readonly HeldRow[],
  { key, waiters }: { readonly key: string; readonly waiters: number },
): HeldRow[] {
  const left = [...held];
  return holders.map(({ token, leaseLeftMs }) => {
    const source = sourceOf(token);
    const at = left.findIndex(({ process }) => process === source);
    const [known] = at < 0 ? [] : left.splice(at, 1);
    const lease = { leaseLeftMs: Number.isFinite(leaseLeftMs) ? leaseLeftMs : null };
    if (known) return { ...known, ...lease };
    const process = source === undefined ? { host: null, pid: null } : hostAndPid(source);
    const unknown = { label: null, template: null, method: null, traceId: null, heldMs: null, fence: null };
    const facts = { mode: modeOf(sharing), waiters, isOverdue: false };
    return { ...keyed(key), ...unknown, ...process, process: source ?? null, ...facts, ...lease };
  });
}

/**
 * Brings waiters in the order in which they will be served: a process has one place in the queue of the store, which
 * its first caller takes; or, with `fair`, one for each caller. The others follow as they came.
 */
function inOrder(waiting: readonly WaitingRow[], queue: readonly (string | undefined)[]): WaitingRow[] {
  const left = [...waiting].sort((a, b) => b.waitingMs - a.waitingMs);
  const first = queue.flatMap((source) => {
    const at = left.findIndex(({ process }) => process === source);
    return at < 0 ? [] : left.splice(at, 1);
  });
  return [...first, ...left].map((row, at) => ({ ...row, place: at + 1 }));
}

const cut = <Row>(rows: readonly Row[]): Cut<Row> => ({ total: rows.length, items: rows.slice(0, MOST_ROWS) });

const modeOf = (sharing: Sharing): KeyMode => (sharing === 'read' || sharing === 'exclusive' ? sharing : 'permit');

/** The source of a token of ours. */
function sourceOf(token: string): string | undefined {
  return /^([\w.-]+:\d+:[\w-]{16})\./.exec(token)?.[1];
}
