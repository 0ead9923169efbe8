/** A question to a process that shares the store. */
export interface ProcessQuestion {
  /** What it is about, such as `locks`. */
  readonly kind: string;
  /** What the process needs to know for its answer. Travels as JSON. */
  readonly about: unknown;
}

/**
 * Most characters of a question or an answer as JSON, in one message: more at once would hold up the locks that share
 * the connection.
 */
export const LONGEST_ANSWER = 100_000;

/**
 * What became of a question. `answer` is unchecked, as any client of the server may publish; it is undefined when the
 * process does not know that kind of question. `silent`: the process got the question and did not answer in good time.
 * `gone`: it listens no more. `unavailable`: the question could not be put.
 */
export type ProcessReply = { readonly answer: unknown } | 'silent' | 'gone' | 'unavailable';

/** Why a question did not reach everybody. */
export type UnreachedReason =
  /** A process got the question and did not answer in time: it is stalled, or runs an older version. */
  | 'silent'
  /** A server can't be reached, or refuses. */
  | 'unavailable'
  /** The user of the connection may not look for the processes. */
  | 'forbidden'
  /** This process has no subscription at the moment, so it could not hear any answer. */
  | 'unsubscribed'
  /** The store of the app does not know its processes. */
  | 'unsupported';

/** A process or a server that a question did not reach. What only they know is missing in the result. */
export interface Unreached {
  readonly what: 'process' | 'server';
  /** `host:pid` of a process; the address of a server. */
  readonly name: string;
  /** Of a process, as far as its name tells. */
  readonly host?: string | undefined;
  readonly pid?: number | undefined;
  /** Names the `LockService` within its process. */
  readonly instance?: string | undefined;
  readonly reason: UnreachedReason;
  /** Says in a sentence what happened, and what to do. */
  readonly message: string;
}

/** The live processes that share the store, as far as they could be found. */
export interface FoundProcesses {
  /** The sources of their tokens: `host:pid:random`. */
  readonly sources: readonly string[];
  /** Where it could not look for processes. */
  readonly unreached: readonly Unreached[];
}
