import type { Sharing } from './lock-command.js';

/** A holder of a key. */
export interface HolderView {
  /** The owner token, or what another tool wrote under the key. */
  readonly token: string;
  /** How long its lease still lasts, in ms; `Infinity` for a key without an end. */
  readonly leaseLeftMs: number;
}

/** A waiter in the queue of a key. */
export interface WaiterView {
  readonly token: string;
  readonly sharing: Sharing;
  readonly label: string | undefined;
}

/** The holders and the waiters of a key. */
export interface KeyView {
  readonly sharing: Sharing;
  /** One holder, if the key is not shared. */
  readonly holders: readonly HolderView[];
  /** The waiters, in their order. Without `fair`, only the first of each process. */
  readonly waiters: readonly WaiterView[];
}

/** What only the holder's own process knows about a lock. */
export interface LockDetails {
  readonly fence: number;
  /** When it was acquired, in ms since 1970. */
  readonly acquiredAt: number;
  readonly label: string | undefined;
  /** The trace of the lock, as W3C Trace Context writes it; undefined when it is not traced. */
  readonly traceparent?: string | undefined;
}
