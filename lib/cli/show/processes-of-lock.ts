import type { LockHolder, LockInfo, LockWaiter } from '../../core/lock-info.js';
import { shownDuration } from '../../service/outage-reporter.js';
import { shownText, table } from './table.js';

/** Shows who holds a key and who waits for it. On a quorum, nobody knows who waits. */
export function shownLock({ key, mode, permits, holders, waiters }: LockInfo, isQuorum: boolean): string {
  const kind = permits === undefined ? mode : `${permits} permits`;
  const head = `${shownText(key)} (${kind})\n\nHeld by\n`;
  const held = table(HOLDER_HEADS, holders.map(holderRow), { indent: '  ' });
  if (waiters.length === 0) return `${head}${held}${isQuorum ? '' : '\nNobody waits.\n'}`;
  const waiting = table(WAITER_HEADS, waiters.map(waiterRow), { indent: '  ' });
  return `${head}${held}\nWaiting, the first one next\n${waiting}`;
}

const WAITER_HEADS = ['PROCESS', 'LABEL', 'MODE', 'TOKEN'];

/** What is left to know of a holder whose process does not answer. */
const HOLDER_HEADS = ['PROCESS', 'LABEL', 'FOR', 'LEASE LEFT', 'FENCE', 'TOKEN'];

function holderRow(holder: LockHolder): (string | undefined)[] {
  const { label, since, remaining, fence, token, isKept } = holder;
  return [
    processOf(holder),
    isKept ? 'work done' : label,
    // By two clocks: that of the holder may be ahead.
    since && shownDuration(Math.max(0, Date.now() - since.getTime())),
    shownDuration(remaining),
    fence?.toString(),
    token,
  ];
}

const waiterRow = (waiter: LockWaiter): (string | undefined)[] => [
  processOf(waiter),
  waiter.label,
  waiter.mode,
  waiter.token,
];

/** `host:pid`; undefined for another tool. */
export const processOf = ({ host, pid }: LockHolder | LockWaiter): string | undefined => host && `${host}:${pid}`;
