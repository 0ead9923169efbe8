import { MOST_CALLS } from '../../core/list/calls-question.js';
import { sourceOf } from '../../core/request/lock-token.js';
import { MOST_HISTORY } from '../activity/report-limits.js';
import type { SentEvent } from '../activity/process-report.js';
import type { Cut, HeldRow, KeyMode, KeyView, WaitingRow } from '../page-snapshot.js';
import { isKept, permitsOf, type KeyView as StoredKey, type Sharing } from '../../store/lock-store.js';
import { hashOfToken } from './hash-of-token.js';
import { hostAndPid } from './host-and-pid.js';
import type { CallsOfProcess } from './longest-calls.js';
import type { KnownProcess } from './process-book.js';
import { heldRows, keyed, keyEvent, mayBeHeld, waitingRows } from './rows.js';

/** What is known of a key. */
interface KnownKey {
  /** What the store says; null when the key is free there, undefined when that is not known. */
  readonly stored: StoredKey | null | undefined;
  readonly answering: ReadonlySet<string>;
  readonly calls: readonly CallsOfProcess[];
  readonly histories: readonly { readonly process: KnownProcess; readonly part: readonly SentEvent[] }[];
}

/** Puts together what the store and the processes know of a key. */
export function keyViewOf(key: string, { stored, calls, histories, answering }: KnownKey): KeyView {
  const waiting = calls.flatMap(({ process, part }) =>
    part.waiting.items.flatMap((call) => waitingRows(process, call).filter((row) => row.key === key)),
  );
  const held = calls.flatMap(({ process, part }) =>
    part.held.items.flatMap((call) => heldRows(process, call, () => waiting.length).filter((row) => row.key === key)),
  );
  const about = { key, waiters: waiting.length, answering };
  const holders = stored ? storedHolders(stored, held, about) : stored === null ? [] : held.filter(mayBeHeld);
  const waiters = inOrder(waiting, stored?.waiters.map(({ token }) => sourceOf(token)) ?? []);
  const history = histories.flatMap(({ process, part }) => part.map((event) => keyEvent(process, event)));
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

interface StoredAbout {
  readonly key: string;
  readonly waiters: number;
  /** The processes that have answered just now. */
  readonly answering: ReadonlySet<string>;
}

/** The holders that the store names, with what their processes say of them. */
export function storedHolders(
  { holders, sharing }: StoredKey,
  held: readonly HeldRow[],
  { key, waiters, answering }: StoredAbout,
): HeldRow[] {
  const left = [...held];
  const sources = holders.map(({ token }) => sourceOf(token));
  return holders.map(({ token, leaseLeftMs }, nth) => {
    const source = sources[nth];
    const isSilent = source !== undefined && !answering.has(source);
    // Nobody knows which of several holders of a silent process is which. The work of a kept one is done, so no process
    // says anything of it.
    const isUnknown = isKept(token) || (isSilent && sources.filter((one) => one === source).length > 1);
    const at = isUnknown ? -1 : left.findIndex(({ process }) => process === source);
    const [known] = at < 0 ? [] : left.splice(at, 1);
    const lease = { leaseLeftMs: Number.isFinite(leaseLeftMs) ? leaseLeftMs : null };
    if (known) return { ...known, ...lease };
    const process = source === undefined ? { host: null, pid: null } : hostAndPid(source);
    const unknown = { label: null, template: null, method: null, traceId: null, heldMs: null, fence: null };
    const facts = {
      tokenHash: hashOfToken(token),
      mode: modeOf(sharing),
      waiters,
      isOverdue: false,
      isSilent: isSilent && !isKept(token),
      isKept: isKept(token),
    };
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

const cut = <Row>(rows: readonly Row[]): Cut<Row> => ({ total: rows.length, items: rows.slice(0, MOST_CALLS) });

const modeOf = (sharing: Sharing): KeyMode => (sharing === 'read' || sharing === 'exclusive' ? sharing : 'permit');
