import type { HeldRow, PageSnapshot } from '../../lib/page/page-snapshot.js';

/** What somebody should know before taking a lock away: facts first, then what follows from them. */
export interface Advice {
  /** The short answer. */
  readonly verdict: string;
  readonly reasons: readonly string[];
}

type Facts = Pick<PageSnapshot, 'waitGraph'>;

/** Answers "may I take it away?" for one holder of a key. */
export function adviceOn(holder: HeldRow, waiters: number, { waitGraph }: Facts): Advice {
  const reasons: string[] = [];
  if (holder.isOverdue) reasons.push('It is held longer than its “warnAfter”.');
  if (isInDeadlock(holder, waitGraph))
    reasons.push(
      'Its holder is part of a deadlock: to take one key of the circle away ends it. It ends by itself when the first of them has waited long enough.',
    );
  if (waiters === 0) reasons.push('Nobody waits for it.');
  if (holder.isKept) return afterItsWork(reasons);
  return holder.process !== null && !holder.isSilent
    ? whileItRuns(holder, reasons)
    : withoutItsProcess(holder, reasons);
}

function whileItRuns({ fence }: HeldRow, reasons: string[]): Advice {
  return {
    verdict: 'Its process is alive and answers, so its work is probably still running. Look at that first.',
    reasons: [
      ...reasons,
      'If you take it away, the next caller enters at once. The work is told to stop by its signal; work that does not listen to the signal goes on beside the next holder.',
      fence === null
        ? 'Without a fence nothing tells late writes from those of the next holder.'
        : `Writes that carry the fence ${fence} are refused after a newer one, where the database checks fences.`,
    ],
  };
}

function afterItsWork(reasons: string[]): Advice {
  return {
    verdict: 'Nobody is inside: its work is done, and “atLeast” keeps the key until the lease is over.',
    reasons: [...reasons, 'If you take it away, the next caller enters at once: a job may run a second time.'],
  };
}

function withoutItsProcess({ leaseLeftMs }: HeldRow, reasons: string[]): Advice {
  if (leaseLeftMs === null)
    return {
      verdict: 'Another tool has set this key without an end: it stays until somebody removes it.',
      reasons: [...reasons, 'Ask whoever runs that tool; nothing here knows what it does.'],
    };
  return {
    verdict:
      'Its process did not answer: it is stalled or gone, or it is another tool. If it is gone, the lock ends by itself with its lease. Wait for that first.',
    reasons: [...reasons, 'If the lease gets longer again, somebody renews it: then the work is running.'],
  };
}

function isInDeadlock({ key, process }: HeldRow, { calls, cycles }: PageSnapshot['waitGraph']): boolean {
  const inCycle = new Set(cycles.flat());
  return calls.items.some((call) => inCycle.has(call.id) && call.process === process && call.holds.includes(key));
}
