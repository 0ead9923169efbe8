import type { Sharing } from '../../store/lock-store.js';

/** Names the question what a process holds and waits for. */
export const LIST = 'locks';

/** Most holders, and most groups of waiters, that a process names for one key. */
export const MOST_NAMED = 20;

/** Longest label, method, template or token that is passed on, in characters. */
export const LONGEST_NAME = 200;

/** Which keys a process is asked for. */
export interface ListQuestion {
  /** A pattern that the keys match. */
  readonly match: string;
  /** How long they are held or waited for at least, in ms. */
  readonly olderThanMs: number;
  /** How many at most. */
  readonly limit: number;
  /** Only these. */
  readonly keys?: readonly string[] | undefined;
  /** Only those behind this place. */
  readonly after?: Place | undefined;
}

/** The place of a key in the order of a process: since when it is held or waited for, in ms since 1970; and the key. */
export type Place = readonly [since: number, key: string];

/** Who a caller is. */
interface OwnCaller {
  readonly label?: string | undefined;
  readonly method?: string | undefined;
  readonly template?: string | undefined;
  /** In ms since 1970. */
  readonly since: number;
  /** How long ago that was, in ms. */
  readonly ageMs: number;
}

/** A caller of a process that holds a key. */
export interface OwnHolder extends OwnCaller {
  /** Only if no later caller can have the same one. */
  readonly token?: string | undefined;
  readonly fence: number;
  /** The trace of the lock, as W3C Trace Context writes it, if it is traced. */
  readonly traceparent?: string | undefined;
  readonly remainingMs: number;
}

/**
 * Callers of a process that wait for a key, of one label and mode. `since` and `traceparent` are those of the first.
 */
export interface OwnWaiters extends OwnCaller {
  /** The trace of the wait, as W3C Trace Context writes it, if it is traced. */
  readonly traceparent?: string | undefined;
  readonly sharing: Sharing;
  readonly callers: number;
}

/** What the callers of a process have to do with a key. */
export interface OwnKey {
  readonly key: string;
  /** How it is held; how it is waited for, if no caller of the process holds it. */
  readonly sharing: Sharing;
  /** Since the longest time first, as are the waiters; of each `MOST_NAMED` at most. */
  readonly holders: readonly OwnHolder[];
  readonly holderCount: number;
  readonly waiters: readonly OwnWaiters[];
  readonly waiterCount: number;
}

/** The reply of a process. */
export interface ListAnswer {
  /** Since the longest time first. */
  readonly keys: readonly OwnKey[];
  /** How many there are, these and those behind them. */
  readonly total: number;
  /** Where to go on, if these are not all. */
  readonly next?: Place | undefined;
}
