/**
 * What the page shows, made at most once a second for all who look at it. All durations are in ms, and count back from
 * the moment at which the snapshot was made, so that no reader has to compare clocks. Each list has its total, because
 * it is cut off.
 */
export interface PageSnapshot {
  /** When it was made, in ms since 1970, by the clock of the process that serves the page. For display only. */
  readonly at: number;
  /** The `name` of the `RedisLockModule`. */
  readonly module: string;
  /** Whether `POST unlock` is allowed. */
  readonly actions: boolean;
  /** The text that the rows of `held`, `waiting`, `hotKeys` and `losses` contain: `''` for all. */
  readonly filter: string;
  readonly server: ServerState;
  readonly totals: Totals;
  /** What is held, the longest first. A lock of several keys has one row for each. */
  readonly held: Cut<HeldRow>;
  /** The waiting calls, the longest wait first. A call that waits for several keys has one row for each. */
  readonly waiting: Cut<WaitingRow>;
  /** What the last minutes were like, by label: the label with the longest waits in all first. */
  readonly labels: Cut<LabelRow>;
  /** The slots of all `series`. */
  readonly slots: Slots;
  /** The keys that were waited for most in the last minutes; then those that were acquired most often. */
  readonly hotKeys: readonly HotKey[];
  readonly losses: Losses;
  /** The living processes that use the locks, by host and pid. */
  readonly processes: readonly ProcessRow[];
  readonly waitGraph: WaitGraph;
  /** The view of one key, if the request names one. */
  readonly key: KeyView | null;
}

/** A list that is cut off, and how long it is without that. */
export interface Cut<Row> {
  readonly total: number;
  readonly items: readonly Row[];
}

/** How the Redis server does, or the servers of a quorum. */
export interface ServerState {
  /** Whether a lock can be acquired, at the last check. */
  readonly isUp: boolean;
  /** How many nodes granted a lock; of how many. One, if it is no quorum. */
  readonly up: number;
  readonly of: number;
  /** What those said that granted none: one sentence each. */
  readonly errors: readonly string[];
  /** What makes a server unfit to keep locks, although it grants them: one sentence each. */
  readonly problems: readonly string[];
  /** How old the check is. It takes place every five seconds. */
  readonly checkedAgoMs: number;
  /** For how long it has been down; null when it is up. While it is down, only the rows of this process are fresh. */
  readonly downForMs: number | null;
  /** What could not be reached for this snapshot, so that rows are missing: one sentence each. */
  readonly unreached: readonly string[];
}

/** Sums over all processes, whatever the filter is. */
export interface Totals {
  readonly held: number;
  readonly waiting: number;
  /** Locks acquired per second, over the last ten seconds. */
  readonly acquiredPerSecond: number;
  readonly lostInLastHour: number;
  readonly processes: number;
}

/** A caller of a process: one that holds a key, or waits for it. */
interface Caller {
  /** `label` of the call; `Class.method` if `@WithLock` has none. Null when nobody said. */
  readonly label: string | null;
  /** The key's template, such as `account:<userId>`. */
  readonly template: string | null;
  /** The method of `@WithLock`: `Class.method`. */
  readonly method: string | null;
  /** The id of its process in `processes`. Null for another tool, and for a process that does not answer. */
  readonly process: string | null;
  readonly host: string | null;
  readonly pid: number | null;
  /** The id of the trace that it runs in: 32 hexadecimal digits. Null without OpenTelemetry. */
  readonly traceId: string | null;
}

/** How a key is shared. */
export type KeyMode = 'exclusive' | 'read' | 'permit';

/** Names a key. */
interface Keyed {
  readonly key: string;
  /** How many characters the key has: 1,024 at most. */
  readonly keyLength: number;
}

export interface HeldRow extends Keyed, Caller {
  readonly mode: KeyMode;
  /** How long ago it was acquired. Null when its process did not answer, or is another tool. */
  readonly heldMs: number | null;
  /** How long the lease lasts without another renewal. Null for a key without an end. */
  readonly leaseLeftMs: number | null;
  /** Identifies this lock, also in `POST unlock`. Null when its process did not answer, or is another tool. */
  readonly fence: number | null;
  /** Identifies a lock without a fence: a hash of its token. Null for one with a fence. */
  readonly tokenHash: string | null;
  /** How many callers wait for the key, in all processes. */
  readonly waiters: number;
  /** Whether it is held longer than its `warnAfter`. */
  readonly isOverdue: boolean;
  /** Whether its process does not answer: it is stalled, stopped or gone. */
  readonly isSilent: boolean;
  /** Whether its work is done and `atLeast` keeps the key: no caller is inside. */
  readonly isKept: boolean;
}

export interface WaitingRow extends Keyed, Caller {
  readonly mode: KeyMode;
  readonly waitingMs: number;
  /** Its place in the queue, 1 for the next. Only in the view of a key. */
  readonly place: number | null;
  /** The keys that it holds while it waits. */
  readonly holds: readonly string[];
}

/** The slots of time of all `series`, of one length. */
export interface Slots {
  /** How long a slot is: 10,000 ms. */
  readonly stepMs: number;
  /** How many there are: 60. */
  readonly count: number;
  /** When each slot began, in ms since 1970, the oldest first. The last slot still goes on. */
  readonly startsAt: readonly number[];
}

/** Counts and times of all calls of a label, over all slots. */
export interface LabelRow {
  readonly label: string;
  readonly acquired: number;
  readonly timeouts: number;
  readonly unavailable: number;
  readonly aborted: number;
  readonly lost: number;
  /** How long those waited that acquired the lock. */
  readonly wait: Times;
  /** How long the lock was held. */
  readonly hold: Times;
}

/** The distribution of a duration, in ms; within 10 % of the true values. */
export interface Times {
  readonly count: number;
  /** All of them together. */
  readonly sum: number;
  /** Null without any. */
  readonly p50: number | null;
  readonly p99: number | null;
  /** By slot, the oldest first; null where there are none. Empty for all but the first twelve labels. */
  readonly series: { readonly p50: readonly (number | null)[]; readonly p99: readonly (number | null)[] };
}

/** A key that many want, over the last five minutes. */
export interface HotKey extends Keyed {
  readonly acquired: number;
  readonly timeouts: number;
  /** How long its callers waited, all together. */
  readonly waitedMs: number;
  /** A label of its callers. */
  readonly label: string | null;
}

/** The locks lost in the last hour. */
export interface Losses {
  readonly total: number;
  /**
   * How many for each reason: `expired`, `taken`, `shutdown`, `unlocked`; `forced` for those taken by `forceUnlock`.
   */
  readonly byReason: Readonly<Record<string, number>>;
  /** The latest first. */
  readonly items: readonly LossRow[];
}

export interface LossRow extends Keyed, Caller {
  readonly agoMs: number;
  readonly reason: string;
  readonly heldMs: number;
  readonly fence: number;
  /** By whom and why, if it was released by `forceUnlock`. */
  readonly by: string | null;
  readonly why: string | null;
}

/** A living process that uses the locks: one `LockService`. What only `LockPageModule` counts is null without it. */
export interface ProcessRow {
  /** Names the process and its `LockService`: `host:pid:instance`. */
  readonly id: string;
  readonly host: string;
  readonly pid: number;
  /** Whether it is the one that serves the page. */
  readonly isThis: boolean;
  /** Whether it imports `LockPageModule`: otherwise only its calls are known. */
  readonly hasPage: boolean;
  /** Whether it does not answer: it is stalled or stopped. */
  readonly isSilent: boolean;
  /** For how long it has not answered: its rows are as old as that. 0 when it answers. */
  readonly silentMs: number;
  readonly uptimeMs: number | null;
  /** Null when it has been silent since it was asked first. */
  readonly held: number | null;
  readonly waiting: number | null;
  /** Locks acquired per second, over the last ten seconds. */
  readonly acquiredPerSecond: number | null;
  readonly lostInLastHour: number | null;
  /**
   * What was left of a lease when it was renewed: the smallest share of the last minute or two. Null without renewals.
   */
  readonly leaseMargin: { readonly ms: number; readonly shareOfLease: number } | null;
}

/** Which calls wait for each other: those that hold a key while they wait for another. */
export interface WaitGraph {
  /** Cut off after a hundred calls. */
  readonly calls: Cut<WaitingCall>;
  readonly edges: readonly WaitEdge[];
  /** The calls of each deadlock, by `id`: none of them goes on before the first of them gives up. */
  readonly cycles: readonly (readonly string[])[];
}

export interface WaitingCall extends Caller {
  readonly id: string;
  readonly holds: readonly string[];
  readonly waitsFor: readonly string[];
  readonly waitingMs: number;
}

/** A call waits for a key. */
export interface WaitEdge {
  readonly from: string;
  readonly key: string;
  /** The call that holds the key, if it waits too; otherwise null: whoever holds it goes on. */
  readonly to: string | null;
  /** Whether the edge is part of a cycle. */
  readonly isInCycle: boolean;
}

/** One key. */
export interface KeyView extends Keyed {
  readonly isHeld: boolean;
  readonly mode: KeyMode | null;
  /** How many may hold it at once, if it is a semaphore. */
  readonly permits: number | null;
  readonly holders: Cut<HeldRow>;
  /** Who waits, in the order in which they will be served. */
  readonly waiters: Cut<WaitingRow>;
  /** What happened to it in all processes lately, the latest first; each process keeps the last few of each key. */
  readonly history: readonly KeyEvent[];
}

export interface KeyEvent extends Caller {
  readonly agoMs: number;
  /** The type of the event of `LockService.events`: `queued`, `acquired`, `released`, `timeout`, `lost`, and so on. */
  readonly type: string;
  readonly fence: number | null;
  readonly waitedMs: number | null;
  readonly heldMs: number | null;
  /** More about it: the reason of a loss or of a time-out; by whom and why it was released by force. */
  readonly detail: string | null;
}

/** The body of `POST unlock`. */
export interface UnlockRequest {
  /** The key of the row. */
  readonly key: string;
  /** What the user has typed: the same. */
  readonly typedKey: string;
  /** The fence of the row, or null if it has none: another holder than this one keeps its lock. */
  readonly fence: number | null;
  /** The same of a row without a fence. */
  readonly tokenHash: string | null;
  /** Why: 1 to 200 characters. The holder's error and the log have it. */
  readonly reason: string;
}

/** The reply to `POST unlock`. */
export interface UnlockReply {
  /** False when the key is free, or has another holder by now. */
  readonly unlocked: boolean;
}
