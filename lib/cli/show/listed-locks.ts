import type { ListedLock } from '../../core/lock-list.js';
import { shownDuration } from '../../service/outage-reporter.js';
import { tableLines, type TableLook } from './table.js';

const HEADS = ['KEY', 'STATE', 'HOLDER', 'AGE', 'LEASE LEFT', 'WAITING', 'LABEL'];
const [STATE, WAITING] = [HEADS.indexOf('STATE'), HEADS.indexOf('WAITING')];
/** Those whose texts can be of any length. */
const SHRINKING = [HEADS.indexOf('KEY'), HEADS.indexOf('HOLDER'), HEADS.indexOf('LABEL')];

/** Where locks are shown. */
export interface Display {
  /** How many columns a terminal has. Undefined where lines can be of any length. */
  readonly columns: number | undefined;
  readonly hasColours: boolean;
}

/** Shows locks as lines, one for each key, below a line of heads. */
export function shownLocks(locks: readonly ListedLock[], { columns = Infinity, hasColours }: Display): string[] {
  const paint: TableLook['paint'] = (cell, { row, column }) => {
    if (row === 'heads') return `\x1b[2m${cell}\x1b[22m`;
    const { waiterCount } = locks[row]!;
    if (column === WAITING && waiterCount > 0) return `\x1b[33m${cell}\x1b[39m`;
    return column === STATE && isSilent(locks[row]!) ? `\x1b[31m${cell}\x1b[39m` : cell;
  };
  return tableLines(HEADS, locks.map(row), {
    width: columns,
    shrinking: SHRINKING,
    ...(hasColours ? { paint } : {}),
  });
}

function row(lock: ListedLock): (string | undefined)[] {
  const { key, holders, holderCount, waiters, waiterCount } = lock;
  const [holder] = holders;
  const ageMs = holder ? holder.heldMs : waiters[0]?.waitedMs;
  const more = holderCount > 1 ? ` +${holderCount - 1}` : '';
  return [
    key,
    stateOf(lock),
    holder?.host && `${holder.host}:${holder.pid}${more}`,
    ageMs === undefined ? undefined : shownDuration(ageMs),
    holder && shownDuration(Math.min(...holders.map(({ remaining }) => remaining))),
    String(waiterCount),
    holder ? holder.label : waiters[0]?.label,
  ];
}

function stateOf(lock: ListedLock): string {
  const { mode, permits, holders, holderCount } = lock;
  if (holders.length === 0) return 'waited for';
  if (isKept(lock)) return 'kept';
  if (isSilent(lock)) return 'no answer';
  if (mode === 'permit') return `${holderCount} of ${permits}`;
  if (mode === 'read') return holderCount === 1 ? '1 reader' : `${holderCount} readers`;
  return 'held';
}

/** Whether only Redis knows who holds the key: the holder's process does not answer, or it is another tool. */
const isSilent = ({ holders: [holder] }: ListedLock): boolean =>
  holder !== undefined && holder.heldMs === undefined && !holder.isKept;

/** Whether the work of all holders is done, and `atLeast` keeps the key. */
const isKept = ({ holders }: ListedLock): boolean => holders.length > 0 && holders.every((holder) => holder.isKept);
