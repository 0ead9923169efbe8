import type { LocalQueue, Entry } from './local-queue.js';
import { refusal, type LockRequest, type Refusal } from '../request/lock-request.js';
import type { DeadlockDetector } from '../nesting/deadlock-detector.js';

export interface Circumstances {
  readonly startedAt: number;
  /** `host:pid` of this process, to name who has the key. */
  readonly holder: string;
  readonly waiting: DeadlockDetector;
}

/** Where the callers of a key queue. */
export type GateOf = (key: string) => LocalQueue;

/**
 * Goes through the gates of all keys of the request. Waits for those that are busy one by one, and takes none meanwhile: others may
 * have what nobody uses. When it has waited as many times as it has keys, and others were faster, it takes them in their fixed order
 * and keeps what it has: so it gets in, and nobody waits for each other. A request of one key may be handed the lock itself on the way.
 *
 * @throws the reason of a signal that aborts, or what the caller in front failed with
 */
export async function enterKeys(
  gateOf: GateOf,
  request: LockRequest,
  circumstances: Circumstances,
): Promise<Entry | Refusal> {
  const { keys } = request;
  const enterAll = (but?: string): boolean => {
    const others = keys.filter((key) => key !== but);
    if (!others.every((key) => gateOf(key).isFree(key))) return false;
    for (const key of others) gateOf(key).tryEnter(key);
    return true;
  };
  const waits = keys.length === 1 ? 0 : keys.length;
  for (let waited = 0; waited < waits; waited++) {
    if (enterAll()) return 'turn';
    const busy = keys.find((key) => !gateOf(key).isFree(key))!;
    const passage = await queueFor(busy, gateOf(busy), request, circumstances);
    if (passage !== 'turn' || enterAll(busy)) return passage;
    leaveKeys(gateOf, [busy]);
  }
  return enterInOrder(gateOf, request, circumstances);
}

/** Takes one after the other, and keeps those before while it waits for the next; gives back those it got when one can't be had. */
async function enterInOrder(
  gateOf: GateOf,
  request: LockRequest,
  circumstances: Circumstances,
): Promise<Entry | Refusal> {
  const entered: string[] = [];
  try {
    for (const key of request.keys) {
      const gate = gateOf(key);
      let passage: Entry | Refusal = 'turn';
      if (!gate.tryEnter(key)) {
        // Who only tries one of these keys need not know how this ends.
        for (const before of entered) gateOf(before).setFront(before, 'waiting');
        passage = await queueFor(key, gate, request, circumstances);
      }
      if (passage !== 'turn') {
        leaveKeys(gateOf, entered);
        return passage;
      }
      entered.push(key);
    }
    return 'turn';
  } catch (error) {
    leaveKeys(gateOf, entered);
    throw error;
  }
}

export function leaveKeys(gateOf: GateOf, keys: readonly string[]): void {
  for (const key of keys) gateOf(key).leave(key);
}

/**
 * Queues for one key of the request in this process.
 *
 * @throws the reason of a signal that aborts, or what the caller in front failed with
 */
export function queueFor(
  key: string,
  gate: LocalQueue,
  request: LockRequest,
  circumstances: Circumstances,
): Promise<Entry | Refusal> {
  const { waitMs, maxWaiters } = request;
  const { startedAt, waiting } = circumstances;
  if (waitMs === 0) return tryAgain(key, gate, request, circumstances);
  const ahead = gate.waiterCount(key);
  const holder = gate.isInside(key) ? circumstances.holder : undefined;
  if (ahead >= maxWaiters)
    return Promise.resolve(
      refusal('too-many-waiters', request, startedAt, { holder, ahead, leaseLeftMs: gate.leaseLeftMs(key) }),
    );
  request.onWait?.();
  return waiting.during(request, (findDeadlock) => {
    const late = (): Refusal =>
      refusal('held', request, startedAt, {
        holder,
        ahead,
        leaseLeftMs: gate.leaseLeftMs(key),
        deadlock: findDeadlock(),
      });
    return gate.enter(key, startedAt + waitMs, request.waitSignals(), request, late);
  });
}

/** A caller that does not wait only wants to know what the one in front is told. */
async function tryAgain(
  key: string,
  gate: LocalQueue,
  request: LockRequest,
  { startedAt, holder }: Circumstances,
): Promise<Entry | Refusal> {
  await gate.answered(key, request.waitSignals(), request);
  const facts = {
    holder: gate.isInside(key) ? holder : undefined,
    ahead: gate.waiterCount(key),
    leaseLeftMs: gate.leaseLeftMs(key),
  };
  return gate.tryEnter(key) ? 'turn' : refusal('held', request, startedAt, facts);
}
