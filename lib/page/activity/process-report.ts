import type { OwnCall } from '../../core/list/calls-question.js';
import type { SentLabel } from './label-times.js';
import type { LeaseMargin } from './lease-margins.js';

/** What the page asks each process, once a second for all who look at it. */
export interface ReportQuestion {
  /** The texts by which the viewers filter, in lower case; `''` for all. */
  readonly filters: readonly string[];
  /** The keys that they look at. */
  readonly keys: readonly string[];
  /** The first slot of times that is wanted. */
  readonly slotsFrom: number;
}

/**
 * What a process tells the page about its past. What its calls do now, each process tells without `LockPageModule` too:
 * see `CallsAnswer`. It travels as JSON; durations are in ms, and count back from now.
 */
export interface ProcessReport {
  readonly uptimeMs: number;
  readonly acquiredPerSecond: number;
  readonly lostByReason: Readonly<Record<string, number>>;
  readonly leaseMargin?: LeaseMargin | undefined;
  /** What fits each of the filters, in their order. */
  readonly byFilter: readonly FilteredPast[];
  /** What happened to each of the keys, in their order; the latest first. */
  readonly histories: readonly (readonly SentEvent[])[];
  readonly times: SentTimes;
}

export interface SentTimes {
  /** From this slot on they are complete: as many as fit into the answer. */
  readonly from: number;
  readonly labels: readonly SentLabel[];
}

export interface FilteredPast {
  readonly hotKeys: readonly SentHotKey[];
  readonly losses: readonly SentEvent[];
}

/** An event. What is unknown is left out. */
export interface SentEvent extends Pick<OwnCall, 'keys' | 'label' | 'template' | 'method' | 'traceId' | 'fence'> {
  readonly type: string;
  readonly agoMs: number;
  readonly waitedMs?: number | undefined;
  readonly heldMs?: number | undefined;
  readonly detail?: string | undefined;
  readonly by?: string | undefined;
  readonly why?: string | undefined;
}

export interface SentHotKey {
  readonly key: string;
  readonly acquired: number;
  readonly timeouts: number;
  readonly waitedMs: number;
  readonly label?: string | undefined;
}
