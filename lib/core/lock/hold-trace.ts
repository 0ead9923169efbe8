import type { LockLostError } from '../../errors/lock-lost.error.js';

/** Traces a lock until it is released or lost. */
export interface HoldTrace {
  /** Names it to other processes, as W3C Trace Context does. Undefined when it is not recorded. */
  readonly traceparent: string | undefined;
  /** Runs work as a part of it. */
  run<T>(work: () => T): T;
  end(loss: LockLostError | undefined): void;
}
