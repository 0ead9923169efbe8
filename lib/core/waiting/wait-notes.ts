import type { LockRequest } from '../request/lock-request.js';

/** What those who watch a call know of its wait. */
export interface WaitNotes {
  /** Counts the calls of this `LockService`, as in its events. Undefined when nobody hears events. */
  readonly id?: number;
  /** The keys that it holds while it waits, because it is inside other calls. Undefined when nobody hears events. */
  readonly holding?: readonly string[];
  /** Its trace, as W3C Trace Context writes it. Undefined when it is not traced. */
  readonly traceparent?: string;
}

/** The notes on calls, by their first request. They are not in it: so a call that nobody watches pays nothing. */
const notesOn = new WeakMap<LockRequest, WaitNotes>();

/** Notes something of a call that waits. */
export function noteWait(request: LockRequest, notes: WaitNotes): void {
  const call = request.original ?? request;
  notesOn.set(call, { ...notesOn.get(call), ...notes });
}

/** Returns what is known of a call that waits. */
export function waitNotes(request: LockRequest): WaitNotes {
  return notesOn.get(request.original ?? request) ?? NOTHING;
}

const NOTHING: WaitNotes = {};
