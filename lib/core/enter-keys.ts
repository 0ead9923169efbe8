import type { KeyGate, Passage } from './key-gate.js';
import { refusal, type LockRequest, type Refusal } from './lock-request.js';

export interface Circumstances {
  readonly startedAt: number;
  /** `host:pid` of this process, to name who has the key. */
  readonly holder: string;
}

/** Where the callers of a key queue. */
export type GateOf = (key: string) => KeyGate;

/**
 * Goes through the gates of all keys of the request, one after the other in their fixed order; gives back those it got when
 * one can't be had. A request of one key may be handed the lock itself on the way.
 *
 * @throws the reason of a signal that aborts, or what the caller in front failed with
 */
export async function enterKeys(gateOf: GateOf, request: LockRequest, circumstances: Circumstances): Promise<Passage | Refusal> {
  const entered: string[] = [];
  try {
    for (const key of request.keys) {
      const gate = gateOf(key);
      let passage: Passage | Refusal = 'turn';
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
export function queueFor(key: string, gate: KeyGate, request: LockRequest, circumstances: Circumstances): Promise<Passage | Refusal> {
  const { waitMs, maxWaiters } = request;
  const { startedAt } = circumstances;
  if (waitMs === 0) return tryAgain(key, gate, request, circumstances);
  const ahead = gate.waiters(key);
  const holder = gate.isInside(key) ? circumstances.holder : undefined;
  if (ahead >= maxWaiters) return Promise.resolve(refusal('too-many-waiters', request, startedAt, { holder, ahead }));
  request.onWait?.();
  return gate.enter(key, startedAt + waitMs, request.waitSignals(), request, () => refusal('held', request, startedAt, { holder, ahead }));
}

/** A caller that does not wait only wants to know what the one in front is told. */
async function tryAgain(key: string, gate: KeyGate, request: LockRequest, { startedAt, holder }: Circumstances): Promise<Passage | Refusal> {
  await gate.answered(key, request.waitSignals());
  const facts = { holder: gate.isInside(key) ? holder : undefined, ahead: gate.waiters(key) };
  return gate.tryEnter(key) ? 'turn' : refusal('held', request, startedAt, facts);
}
