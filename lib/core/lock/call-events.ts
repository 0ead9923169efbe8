import { now } from '../../clock/deadline.js';
import { modeOf } from '../request/held-mode.js';
import { changedRequest, type LockRequest, type Refusal } from '../request/lock-request.js';
import { failureOf } from './call-failure.js';
import type { LockCallEvent, LockEvent, ToldOfCall } from './lock-event.js';
import type { LockEvents } from './lock-events.js';
import { Lock } from './lock.js';

/** Where to emit events, and what they tell besides the call. */
export interface CallEventsOf {
  readonly events: LockEvents;
  /** Lists the keys that the running async context holds. */
  readonly heldKeys: () => readonly string[];
}

/** Emits how a call for a lock goes. */
export async function withCallEvents(
  { events, heldKeys }: CallEventsOf,
  request: LockRequest,
  acquire: (request: LockRequest) => Promise<Lock | Refusal>,
): Promise<Lock | Refusal> {
  const startedAt = now();
  const told = toldOf(request, events.nextCall());
  const call = (): LockCallEvent => ({ ...told, waitedMs: now() - startedAt });
  /** The subscription that came last when the wait began: later ones hear nothing of the wait. */
  let queuedFor: number | undefined;
  const onWait: LockRequest['onWait'] = ({ holder, ahead }) => {
    if (queuedFor !== undefined) return;
    queuedFor = events.latest;
    events.emit({ ...call(), type: 'queued', waitMs: request.waitMs, holder, ahead, holding: heldKeys() });
  };
  const emitEnd = (outcome: (call: LockCallEvent) => LockEvent | undefined): void => {
    const end = call();
    const event = outcome(end);
    if (queuedFor !== undefined) events.emit({ ...end, type: 'waited' }, queuedFor);
    if (event) events.emit(event);
  };
  let result: Lock | Refusal;
  try {
    result = await acquire(changedRequest(request, { onWait }));
  } catch (error) {
    const failure = failureOf(error, request);
    emitEnd((call) => {
      if (failure === 'aborted') return { ...call, type: failure, reason: error };
      return failure === 'mistake' ? undefined : { ...call, type: failure, error };
    });
    throw error;
  }
  if (result instanceof Lock) {
    const { fence, isNested } = result;
    const { latest } = events;
    const remainingMs = result.remaining();
    const traceparent = result.trace?.traceparent;
    emitEnd((call) => ({ ...call, type: 'acquired', fence, nested: isNested, remainingMs, traceparent }));
    result.noteAcquired({ id: told.id, latest });
  } else {
    const { reason, waitMs, holder, ahead } = result;
    emitEnd((call) => ({ ...call, type: 'timeout', reason, waitMs, holder, ahead }));
  }
  return result;
}

function toldOf({ keys, label, site, sharing }: LockRequest, id: number): ToldOfCall {
  return { id, keys, label, method: site?.method, template: site?.template, mode: modeOf(sharing) };
}
