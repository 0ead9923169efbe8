import type { LockContext, LockNode } from './lock-context.js';
import type { LockRequest } from '../request/lock-request.js';
import type { Lock } from '../lock/lock.js';

/** A call that waits while it holds locks. */
interface WaitingCall {
  readonly request: LockRequest;
  readonly within: LockNode;
  /** The keys that it holds and others in a circle wait for, once one of them has found that. */
  deadlock: readonly string[] | undefined;
}

/** That a call stands in the way of another, with one of its locks. */
interface Step {
  readonly ofCall: WaitingCall;
  readonly lock: Lock;
}

/** Where more calls than these wait, or a search takes more looks, it finds nothing: a thousand time-outs at once must not stop the process. */
const MOST_CALLS = 100;
const MOST_LOOKS = 1000;

/** Tells which keys of a waiting call complete a circle. Undefined when none was found. */
export type FindDeadlock = () => readonly string[] | undefined;

/**
 * The calls of this process that wait while they hold locks, to say when they wait for each other.
 * Nobody is refused for that: a call need not wait for those it has started.
 */
export class DeadlockDetector {
  readonly #context: LockContext;
  readonly #calls = new Set<WaitingCall>();

  constructor(context: LockContext) {
    this.#context = context;
  }

  /**
   * Notes a call as long as it waits, if it holds locks.
   *
   * @param wait gets what tells of a deadlock, to be asked when the wait is over
   */
  during<T>(request: LockRequest, wait: (findDeadlock: FindDeadlock) => Promise<T>): Promise<T> {
    // One that does not wait stands in nobody's way.
    const within = request.waitMs > 0 ? this.#context.innermost() : undefined;
    if (!within) return wait(() => undefined);
    const call: WaitingCall = { request, within, deadlock: undefined };
    this.#calls.add(call);
    return wait(() => this.#deadlockOf(call)).finally(() => this.#calls.delete(call));
  }

  /** Looks for a circle, and tells all in it: the first one to give up breaks it before the others look. */
  #deadlockOf(call: WaitingCall): readonly string[] | undefined {
    if (call.deadlock || this.#calls.size > MOST_CALLS) return call.deadlock;
    let looks = 0;
    const steps = new Map<WaitingCall, Step | undefined>([[call, undefined]]);
    for (const waiting of steps.keys()) {
      for (const other of this.#calls) {
        if (++looks > MOST_LOOKS) return undefined;
        const lock = other === waiting || (other !== call && steps.has(other)) ? undefined : inTheWay(waiting, other);
        if (!lock) continue;
        if (other !== call) {
          steps.set(other, { ofCall: waiting, lock });
          continue;
        }
        call.deadlock = lock.keys;
        for (let [at, step] = [waiting, steps.get(waiting)]; step; [at, step] = [step.ofCall, steps.get(step.ofCall)]) {
          at.deadlock = step.lock.keys;
        }
        return call.deadlock;
      }
    }
    return call.deadlock;
  }
}

/** The lock of another call that a call waits for. */
function inTheWay({ request, within }: WaitingCall, other: WaitingCall): Lock | undefined {
  return locksOf(other.within).find((lock) => {
    const common = request.keys.filter((key) => lock.keys.includes(key));
    return common.some((key) => excludes(lock, key, request, within));
  });
}

/** Whether the lock must end before the request gets the key: both want it in the same place, and not side by side. */
function excludes(lock: Lock, key: string, { sharing }: LockRequest, within: LockNode): boolean {
  const outer = locksOf(within).find(({ keys }) => keys.includes(key));
  const { nesting } = lock;
  if (nesting) {
    const around = nesting.parents.find(({ keys }) => keys.includes(key));
    return !nesting.isShared(key) && around?.queueOwner(key) === outer?.queueOwner(key);
  }
  if (outer) return false;
  const held = lock.sharing(key);
  const modes = [held, sharing];
  // Whether a permit is in the way depends on those who have the others.
  return modes.includes('exclusive') && modes.every((mode) => mode === 'exclusive' || mode === 'read');
}

/** What a call holds, innermost first. */
function locksOf(within: LockNode): Lock[] {
  const locks: Lock[] = [];
  for (let node: LockNode | undefined = within; node; node = node.outer) if (node.lock?.isHeld) locks.push(node.lock);
  return locks;
}
