import { now } from '../../clock/deadline.js';
import { LockKeyError } from '../../errors/lock-key.error.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { changedRequest, type LockRequest, type Refusal } from '../request/lock-request.js';
import type { LockCallEvent, LockEvent } from './lock-event.js';
import type { LockEvents } from './lock-events.js';
import { Lock } from './lock.js';

/** Emits how a call for a lock goes. */
export async function withCallEvents(
  events: LockEvents,
  request: LockRequest,
  acquire: (request: LockRequest) => Promise<Lock | Refusal>,
): Promise<Lock | Refusal> {
  const startedAt = now();
  let hasWaited = false;
  const emitEnd = (outcome: (call: LockCallEvent) => LockEvent | undefined): void => {
    const call = { keys: request.keys, label: request.label, waitedMs: now() - startedAt };
    const event = outcome(call);
    if (hasWaited) events.emit({ ...call, type: 'waited' });
    if (event) events.emit(event);
  };
  let result: Lock | Refusal;
  try {
    result = await acquire(changedRequest(request, { onWait: () => void (hasWaited = true) }));
  } catch (error) {
    const isAborted = [request.signal, ...(request.signals ?? [])].some(
      (signal) => signal?.aborted && signal.reason === error,
    );
    emitEnd((call) => {
      if (isAborted) return { ...call, type: 'aborted', reason: error };
      return isMistake(error) ? undefined : { ...call, type: 'unavailable', error };
    });
    throw error;
  }
  if (result instanceof Lock) {
    const { fence, isNested } = result;
    const { latest } = events;
    emitEnd((call) => ({ ...call, type: 'acquired', fence, nested: isNested }));
    result.noteAcquired(latest);
  } else {
    const { reason, waitMs, holder, ahead } = result;
    emitEnd((call) => ({ ...call, type: 'timeout', reason, waitMs, holder, ahead }));
  }
  return result;
}

/** Whether the call itself was wrong, which is no event. */
const isMistake = (error: unknown): boolean => error instanceof LockOptionsError || error instanceof LockKeyError;
