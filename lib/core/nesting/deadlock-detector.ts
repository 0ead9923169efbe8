import { ChurnMap } from '../../collections/churn-map.js';
import type { LockContext, LockNode } from './lock-context.js';
import type { LockRequest } from '../request/lock-request.js';
import type { Lock } from '../lock/lock.js';
import type { FindDeadlock, WaitTracker } from '../waiting/wait-tracker.js';

/** A call that waits while it holds locks. */
interface WaitingCall {
  readonly request: LockRequest;
  readonly within: LockNode;
  /** The keys that it holds and others in a circle wait for, once one of them has found that. */
  deadlock: readonly string[] | undefined;
}

/** One step of the search: a call whose lock another call waits for. */
interface Step {
  readonly waiting: WaitingCall;
  /** The lock it waits for. */
  readonly lock: Lock;
}

/**
 * A search gives up when more calls than these wait, or after this many comparisons: a thousand time-outs at once must
 * not stop the process.
 */
const MOST_CALLS = 100;
const MOST_COMPARISONS = 1000;

/**
 * Tracks the calls of this process that wait while they hold locks, to report when they waited for each other.
 * No call is refused for that: a call need not wait for the calls that it started, so a circle may end by itself.
 */
export class DeadlockDetector implements WaitTracker {
  readonly #context: LockContext;
  readonly #calls = new ChurnMap<WaitingCall, true>();

  constructor(context: LockContext) {
    this.#context = context;
  }

  /** Tracks a call for as long as it waits, if it holds locks. */
  during<T>(request: LockRequest, wait: (findDeadlock: FindDeadlock) => Promise<T>): Promise<T> {
    // A call that does not wait is part of no deadlock.
    const within = request.waitMs > 0 ? this.#context.innermost() : undefined;
    if (!within) return wait(() => undefined);
    const call: WaitingCall = { request, within, deadlock: undefined };
    this.#calls.set(call, true);
    return wait(() => this.#deadlockOf(call)).finally(() => this.#calls.delete(call));
  }

  /**
   * Searches for a circle, and notes it for all calls in it: the first to give up breaks the circle, before the others
   * search.
   */
  #deadlockOf(call: WaitingCall): readonly string[] | undefined {
    if (call.deadlock || this.#calls.size > MOST_CALLS) return call.deadlock;
    let comparisons = 0;
    const steps = new Map<WaitingCall, Step | undefined>([[call, undefined]]);
    for (const waiting of steps.keys()) {
      for (const other of this.#calls.keys()) {
        if (++comparisons > MOST_COMPARISONS) return undefined;
        const lock = other === waiting || (other !== call && steps.has(other)) ? undefined : inTheWay(waiting, other);
        if (!lock) continue;
        if (other !== call) {
          steps.set(other, { waiting, lock });
          continue;
        }
        call.deadlock = lock.keys;
        for (
          let [at, step] = [waiting, steps.get(waiting)];
          step;
          [at, step] = [step.waiting, steps.get(step.waiting)]
        ) {
          at.deadlock = step.lock.keys;
        }
        return call.deadlock;
      }
    }
    return call.deadlock;
  }
}

/** Finds the lock of another call that a call waits for. */
function inTheWay({ request, within }: WaitingCall, other: WaitingCall): Lock | undefined {
  return locksOf(other.within).find((lock) => {
    const common = request.keys.filter((key) => lock.keys.includes(key));
    return common.some((key) => excludes(lock, key, request, within));
  });
}

/** Whether the lock must end before the request gets the key: both want it in the same place, and not side by side. */
function excludes(lock: Lock, key: string, { sharing }: LockRequest, within: LockNode): boolean {
  const ownLock = locksOf(within).find(({ keys }) => keys.includes(key));
  if (lock.isNested) {
    const { nesting } = lock;
    const parent = nesting.parents.find(({ keys }) => keys.includes(key));
    return !nesting.isShared(key) && parent?.nesting.queueOwner(key) === ownLock?.nesting.queueOwner(key);
  }
  if (ownLock) return false;
  const held = lock.leases[0]!.sharing;
  const modes = [held, sharing];
  // Whether a permit is in the way depends on those who have the others.
  return modes.includes('exclusive') && modes.every((mode) => mode === 'exclusive' || mode === 'read');
}

/** What a call holds of its service, innermost first. */
function locksOf(within: LockNode): Lock[] {
  const locks: Lock[] = [];
  for (let node: LockNode | undefined = within; node; node = node.parent)
    if (node.context === within.context && node.lock?.isHeld) locks.push(node.lock);
  return locks;
}
