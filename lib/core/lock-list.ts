import type { Duration } from '../clock/duration.js';
import type { Unreached } from '../store/lock-store.js';
import type { LockHolder } from './lock-info.js';
import type { SharedMode } from './request/held-mode.js';

/** Options of `list`. */
export interface ListOptions {
  /**
   * Lists only keys that match this pattern, as Redis reads it: `*`, `?`, `[abc]`, `[a-z]`, `[^a]`, and `\` before a
   * character that stands for itself. @default `'*'`
   */
  readonly match?: string | undefined;
  /** Lists only keys that somebody has held, or waited for, for at least this long. @default all */
  readonly olderThan?: Duration | undefined;
  /** Lists at most this many keys, from 1 to 100,000: those that are held the longest. @default 1,000 */
  readonly limit?: number | undefined;
}

/** What is known of a caller beside its process. */
interface ListedCaller {
  /** The method with `@WithLock` that called: `Class.method`. Undefined for a call by hand. */
  readonly method: string | undefined;
  /** The key of that `@WithLock` as it is written there: `account:<userId>`. */
  readonly template: string | undefined;
}

/** A caller that holds a listed key. */
export interface ListedHolder extends Omit<LockHolder, 'token'>, ListedCaller {
  /**
   * The owner's token. Undefined if the lock may be handed to another caller of its process under the same token: then
   * `inspect(key)` names one that is good for `forceUnlock`.
   */
  readonly token: string | undefined;
  /** How long it has held the lock, in ms, by its own clock. Undefined when its process did not answer in time. */
  readonly heldMs: number | undefined;
}

/** Callers of one process that wait for a listed key, with the same label, method and mode. */
export interface ListedWaiters extends ListedCaller, Pick<LockHolder, 'host' | 'pid' | 'instance' | 'label'> {
  readonly mode: SharedMode;
  /** How many may hold the key at once, if they want a permit of a semaphore. */
  readonly permits: number | undefined;
  /** How many callers these are. */
  readonly callers: number;
  /**
   * The trace in which the first of them waits, as W3C Trace Context writes it: the trace id is its second part.
   * Undefined when its wait is not traced.
   */
  readonly traceparent: string | undefined;
  /** Since when the first of them waits, by the clock of its process. */
  readonly since: Date;
  /** How long that is, in ms. */
  readonly waitedMs: number;
}

/** A key that somebody holds or waits for. */
export interface ListedLock {
  readonly key: string;
  /** How it is held; if nobody holds it at this moment, how the first waiter wants it. */
  readonly mode: SharedMode;
  readonly permits: number | undefined;
  /**
   * Who holds it, the longest first; of each process 20 at most. None if the lock is between two holders, or a process
   * has it that did not answer and that nobody waits for.
   */
  readonly holders: readonly ListedHolder[];
  /** How many hold it. */
  readonly holderCount: number;
  /** Who waits for it, the longest first; of each process 20 groups at most. */
  readonly waiters: readonly ListedWaiters[];
  /** How many callers wait for it, in all processes. */
  readonly waiterCount: number;
}

/** What `list` found. */
export interface LockList {
  /** The keys, those that are held the longest first. */
  readonly locks: readonly ListedLock[];
  /** How many there are with those that `limit` left out. If it left out some, each process counts its own. */
  readonly total: number;
  /** What could not be asked or did not answer, so that keys may be missing. Empty if the list is complete. */
  readonly unreached: readonly Unreached[];
}
