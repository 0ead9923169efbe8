import type { LockRequest } from '../request/lock-request.js';

/** A call that waits for a key. */
export interface WaitingCall {
  readonly key: string;
  readonly request: LockRequest;
  /** When it began to wait, by the monotonic clock. */
  readonly startedAt: number;
}
