import type { LockRequest, Refusal, WaitBegin } from '../request/lock-request.js';
import type { CallFailure } from './call-failure.js';
import type { HoldTrace } from './hold-trace.js';
import type { Lock } from './lock.js';

/**
 * Traces the calls of a service where they are made: in the async context of their callers, unlike events. None of its
 * methods throws.
 */
export interface LockTracer {
  /** Begins to trace a call. */
  startCall(call: TracedCall): CallTrace;
}

/** A call that is traced. */
export interface TracedCall {
  readonly request: LockRequest;
  /** When it began, by the monotonic clock. */
  readonly startedAt: number;
}

/** Traces one call until it has its lock, or fails. */
export interface CallTrace {
  /**
   * The call begins to wait, maybe several times. The first time, returns what names its trace to other processes, as
   * W3C Trace Context does; undefined when it is not recorded.
   */
  queued(begin: WaitBegin): string | undefined;
  /** The call has its lock. Returns what traces the lock; undefined for one that holds nothing of its own. */
  acquired(lock: Lock): HoldTrace | undefined;
  refused(refusal: Refusal): void;
  failed(error: unknown, failure: CallFailure): void;
}
