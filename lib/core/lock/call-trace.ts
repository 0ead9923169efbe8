import { now } from '../../clock/deadline.js';
import { changedRequest, type LockRequest, type Refusal, type WaitBegin } from '../request/lock-request.js';
import { noteWait } from '../waiting/wait-notes.js';
import { failureOf } from './call-failure.js';
import type { HoldTrace } from './hold-trace.js';
import type { LockTracer } from './lock-tracer.js';
import { Lock } from './lock.js';

/** Traces how a call for a lock goes, and then its lock. */
export async function withCallTrace(
  tracer: LockTracer,
  request: LockRequest,
  acquire: (request: LockRequest) => Promise<Lock | Refusal>,
): Promise<Lock | Refusal> {
  const trace = tracer.startCall({ request, startedAt: now() });
  const onWait = (begin: WaitBegin): void => {
    const traceparent = trace.queued(begin);
    if (traceparent !== undefined) noteWait(request, { traceparent });
    request.onWait?.(begin);
  };
  let result: Lock | Refusal;
  try {
    result = await acquire(changedRequest(request, { onWait }));
  } catch (error) {
    trace.failed(error, failureOf(error, request.original ?? request));
    throw error;
  }
  if (result instanceof Lock) startHold(result, trace.acquired(result));
  else trace.refused(result);
  return result;
}

/** Has a lock traced from now on. It may be lost already. */
function startHold(lock: Lock, trace: HoldTrace | undefined): void {
  lock.trace = trace;
  if (lock.loss) trace?.end(lock.loss);
}
