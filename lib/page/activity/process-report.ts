import type { KeyMode } from '../page-snapshot.js';
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

/** What a process tells the page about itself. It travels as JSON; durations are in ms, and count back from now. */
export interface ProcessReport {
  readonly uptimeMs: number;
  /** Keys that it holds, and calls for a key that wait. */
  readonly held: number;
  readonly waiting: number;
  readonly acquiredPerSecond: number;
  readonly lostByReason: Readonly<Record<string, number>>;
  readonly leaseMargin?: LeaseMargin | undefined;
  /** What fits each of the filters, in their order. */
  readonly rows: readonly FilteredRows[];
  /** What is known of each of the keys, in their order. */
  readonly keyRows: readonly KeyRows[];
  /** How many calls wait for a key: the keys with most of them. */
  readonly queues: readonly (readonly [key: string, waiting: number])[];
  /** The calls that hold a key while they wait for another. */
  readonly waitingHolders: readonly SentCall[];
  readonly times: SentTimes;
}

export interface SentTimes {
  /** From this slot on they are complete: as many as fit into the answer. */
  readonly from: number;
  readonly labels: readonly SentLabel[];
}

export interface FilteredRows {
  readonly held: SentList<SentCall>;
  readonly waiting: SentList<SentCall>;
  readonly hotKeys: readonly SentHotKey[];
  readonly losses: readonly SentEvent[];
}

export interface KeyRows {
  readonly held: SentList<SentCall>;
  readonly waiting: SentList<SentCall>;
  readonly history: readonly SentEvent[];
}

/** The first calls of a list, and how many keys all of them have. */
export interface SentList<Row> {
  readonly total: number;
  readonly items: readonly Row[];
}

/** Who made a call. What is unknown is left out. */
interface SentCaller {
  readonly label?: string | undefined;
  readonly template?: string | undefined;
  readonly method?: string | undefined;
  readonly traceId?: string | undefined;
}

export interface SentCall extends SentCaller {
  readonly id: number;
  readonly keys: readonly string[];
  readonly mode: KeyMode;
  /** How long it has waited, or has held the lock. */
  readonly ms: number;
  /** Of a lock only. */
  readonly fence?: number | undefined;
  readonly leaseLeftMs?: number | undefined;
  readonly isOverdue?: true | undefined;
  /** The keys that it holds while it waits. */
  readonly holds?: readonly string[] | undefined;
}

export interface SentEvent extends SentCaller {
  readonly type: string;
  readonly keys: readonly string[];
  readonly agoMs: number;
  readonly fence?: number | undefined;
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
