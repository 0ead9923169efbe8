import type { LockRequest } from '../request/lock-request.js';

/** The traces of calls, by their first request. They are not in it: so a call that is not traced pays nothing. */
const traceparents = new WeakMap<LockRequest, string>();

/** Notes the trace of a call that waits, as W3C Trace Context writes it. */
export function noteWaitTrace(request: LockRequest, traceparent: string): void {
  traceparents.set(request.original ?? request, traceparent);
}

/** Returns the trace of a call that waits; undefined when it is not traced. */
export function waitTrace(request: LockRequest): string | undefined {
  return traceparents.get(request.original ?? request);
}
