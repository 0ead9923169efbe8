import type { SharedMode } from '../request/held-mode.js';

/** Names the question which calls of a process hold a lock or wait: that of somebody who looks all the time. */
export const CALLS = 'calls';

/** Most calls of each list of an answer. */
export const MOST_CALLS = 200;

/** Most keys of `queues`, and most calls of `nested`. */
export const MOST_QUEUES = 200;
export const MOST_NESTED = 100;

/** Most texts, and most keys, of one question. */
export const MOST_ASKED = 16;

/** Which calls a process is asked for. */
export interface CallsQuestion {
  /** Calls that have this text in a key, or in what is known of them; in lower case. `''` for all. */
  readonly texts: readonly string[];
  /** Calls for these keys. */
  readonly keys: readonly string[];
}

/** The reply of a process. It travels as JSON; durations are in ms, and count back from now. */
export interface CallsAnswer {
  /** Keys that its calls hold, and calls that wait for a key. */
  readonly held: number;
  readonly waiting: number;
  /** The calls for each of the texts, in their order. */
  readonly byText: readonly CallLists[];
  /** The calls for each of the keys, in their order. */
  readonly byKey: readonly CallLists[];
  /** How many calls wait for a key: the keys with most of them. */
  readonly queues: readonly (readonly [key: string, waiting: number])[];
  /** The calls that hold a key while they wait for another. Only those that began while somebody heard of events. */
  readonly nested: readonly OwnCall[];
}

export interface CallLists {
  /** Since the longest time first, as are those that wait. */
  readonly held: CallList;
  readonly waiting: CallList;
}

/** The first calls of a list, and how many keys all of them have. */
export interface CallList {
  readonly total: number;
  readonly items: readonly OwnCall[];
}

/** A call of a process that holds a lock, or waits for one. What is unknown is left out. */
export interface OwnCall {
  readonly keys: readonly string[];
  readonly mode: SharedMode;
  /** How long it has held the lock, or has waited. */
  readonly ms: number;
  readonly label?: string | undefined;
  readonly template?: string | undefined;
  readonly method?: string | undefined;
  readonly traceId?: string | undefined;
  /** Of a lock only. */
  readonly fence?: number | undefined;
  readonly leaseLeftMs?: number | undefined;
  readonly isOverdue?: true | undefined;
  /** Of a call that waits: its number, as in events, and the keys that it holds meanwhile. */
  readonly id?: number | undefined;
  readonly holds?: readonly string[] | undefined;
}
