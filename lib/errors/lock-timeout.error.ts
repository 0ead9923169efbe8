import { HALF_DONE, LockError, TRY_AGAIN } from './lock.error.js';
import { lockNames } from './messages.js';

/**
 * Says why a call got no lock: another caller held it for all of `wait`, or `maxWaiters` callers were already waiting.
 */
export type TimeoutReason = 'held' | 'too-many-waiters';

export interface TimeoutFacts {
  readonly keys: readonly string[];
  readonly label: string | undefined;
  readonly reason: TimeoutReason;
  /** How long the caller really waited, in ms. */
  readonly waitedMs: number;
  /** How long the caller would have waited at most, in ms. */
  readonly waitMs: number;
  /** `host:pid` of the holder, if it is known. */
  readonly holder: string | undefined;
  /**
   * How many callers were ahead of this one when it last asked, as far as this process knows: of each other process it
   * sees one waiter.
   */
  readonly ahead: number;
  /** How long the lease of the holder lasts if nobody renews it, in ms, if it is known. */
  readonly leaseLeftMs: number | undefined;
  /** How many were allowed to wait in this process. */
  readonly maxWaiters: number;
  /** The keys of all locks that the call is inside the work of. */
  readonly holding: readonly string[];
  /** Whether the call is inside the work of another lock, held or lost by now. @default whether it holds any */
  readonly nested?: boolean;
  /** Keys that this call holds, and that those wait for whom it waited for: a circle. Undefined when none was found. */
  readonly deadlock?: readonly string[] | undefined;
}

/** Thrown when `wait` is over and the key is still held. HTTP 409. */
export class LockTimeoutError extends LockError {
  declare readonly code: 'LOCK_TIMEOUT';
  readonly keys: readonly string[];
  /** Who wanted the lock: the `label` of the call; `Class.method` if `@WithLock` has none. */
  readonly label: string | undefined;
  readonly reason: TimeoutReason;
  readonly waitedMs: number;
  readonly waitMs: number;
  readonly holder: string | undefined;
  readonly ahead: number;
  /**
   * The keys that this call held while it waited, of locks that it is inside of; those from `lock()` are not known. If
   * the holder waited for one of these, both waited in vain. If there are any, part of the work may be done, so the
   * error is not `retryable`.
   */
  readonly holding: readonly string[];
  /**
   * Whether this call and others of this process waited for each other. Take those keys together, or everywhere in the
   * same order. A deadlock is not detected if one of the calls waits for a permit, holds its lock by `lock()`, or runs
   * in another process.
   */
  readonly isDeadlock: boolean;

  constructor(facts: TimeoutFacts) {
    const isNested = facts.nested ?? facts.holding.length > 0;
    super('LockTimeoutError', `Another request is working on this right now${isNested ? HALF_DONE : TRY_AGAIN}`, {
      code: 'LOCK_TIMEOUT',
      status: 409,
      detail: textOf(facts),
      retryable: !isNested,
      retryAfter: isNested ? undefined : retryAfterOf(facts),
    });
    this.keys = facts.keys;
    this.label = facts.label;
    this.reason = facts.reason;
    this.waitedMs = facts.waitedMs;
    this.waitMs = facts.waitMs;
    this.holder = facts.holder;
    this.ahead = facts.ahead;
    this.holding = facts.holding;
    this.isDeadlock = facts.deadlock !== undefined;
  }
}

/** Longest advice, in seconds. */
const LONGEST_RETRY_AFTER = 60;

/**
 * When to try again, in seconds. The lease of a live holder is renewed, so its end says only when the key is free at
 * the latest. Until then the best guess is the time waited so far, at least a second: it grows with the contention. A
 * second more for each waiter ahead.
 */
function retryAfterOf({ leaseLeftMs = Infinity, waitedMs, ahead }: TimeoutFacts): number | undefined {
  if (leaseLeftMs === Infinity) return undefined;
  const guessMs = Math.min(leaseLeftMs, Math.max(1000, waitedMs));
  return Math.min(LONGEST_RETRY_AFTER, Math.max(1, Math.ceil(guessMs / 1000)) + ahead);
}

function textOf({
  keys,
  label,
  reason,
  waitedMs,
  waitMs,
  holder,
  ahead,
  maxWaiters,
  holding,
  deadlock,
}: TimeoutFacts): string {
  const lock = lockNames(keys, label);
  if (reason === 'too-many-waiters') {
    return (
      `Did not wait for ${lock}: ${maxWaiters} callers of this process wait for it already. ` +
      'Raise "maxWaiters", or try again later.'
    );
  }
  const who = holder ? [`holder ${holder}`] : [];
  const line = waitMs > 0 && ahead > 0 ? [`${ahead} ${ahead === 1 ? 'waiter' : 'waiters'} ahead`] : [];
  const by = who.length + line.length > 0 ? ` (${[...who, ...line].join(', ')})` : '';
  if (waitMs === 0) return `Could not take ${lock}: it is held${by}. Set "wait" to wait for it.`;
  return `Gave up waiting for ${lock} after ${Math.round(waitedMs)} ms${by}. ${remedyFor(
    holding.filter((key) => !keys.includes(key)),
    deadlock,
  )}`;
}

function remedyFor(holding: readonly string[], deadlock: readonly string[] | undefined): string {
  const inOrder = 'Take these keys together, or everywhere in the same order.';
  if (deadlock)
    return (
      `It was a deadlock: this call holds ${lockNames(deadlock)}, ` +
      `which a call that it waited for waits for. ${inOrder}`
    );
  if (holding.length > 0)
    return `This call holds ${lockNames(holding)} meanwhile: if the holder waits for that, neither goes on. ${inOrder}`;
  return 'Raise "wait", or do less while holding it.';
}
