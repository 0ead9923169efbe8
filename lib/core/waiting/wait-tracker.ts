import type { LockRequest } from '../request/lock-request.js';

/**
 * Returns the keys of a waiting call that complete a circle of calls that wait for each other. Undefined when none was
 * found.
 */
export type FindDeadlock = () => readonly string[] | undefined;

/** Knows which calls wait. */
export interface WaitTracker {
  /**
   * Tracks a call for as long as it waits.
   *
   * @param wait gets what finds a deadlock, to be called when the wait is over
   */
  during<T>(request: LockRequest, wait: (findDeadlock: FindDeadlock) => Promise<T>): Promise<T>;
}
