import { isKept, permitsOf, type HolderView, type LockStore } from '../store/lock-store.js';
import { partsOf } from './request/lock-token.js';
import { modeOf, type SharedMode } from './request/held-mode.js';

/** A process that holds a lock or waits for it. Host, pid and instance are undefined for another tool. */
interface LockProcess {
  /** The owner's token, as stored in Redis. */
  readonly token: string;
  readonly host: string | undefined;
  readonly pid: number | undefined;
  /** Names the `LockService` within its process. */
  readonly instance: string | undefined;
  /** The `label` of the call; `Class.method` if `@WithLock` has none. */
  readonly label: string | undefined;
}

export interface LockHolder extends LockProcess {
  /** How long its lease lasts if nobody renews it, in ms. */
  readonly remaining: number;
  /** The fence of its lock. Undefined when its process did not answer in time: it is stalled, gone, or another tool. */
  readonly fence: number | undefined;
  /** Since when it holds the lock, by its own clock. Undefined when its process did not answer in time. */
  readonly since: Date | undefined;
  /**
   * The trace of its lock, as W3C Trace Context writes it: the trace id is its second part. Undefined when the lock is
   * not traced, or its process did not answer in time.
   */
  readonly traceparent: string | undefined;
  /** Whether its work is done and `atLeast` keeps the key: no caller is inside. */
  readonly isKept: boolean;
}

export interface LockWaiter extends LockProcess {
  readonly mode: SharedMode;
}

/** Describes the holders and the waiters of a key. */
export interface LockInfo {
  readonly key: string;
  readonly mode: SharedMode;
  /** How many may hold the key at once, if it is a semaphore. */
  readonly permits: number | undefined;
  /** The first of `holders`. */
  readonly holder: LockHolder;
  /** The holder; or all readers, or all holders of a permit. */
  readonly holders: readonly LockHolder[];
  /**
   * The waiters, in the order in which they will be served. Without `fair`, a process has one waiter here for all its
   * callers, with the label of the one that joined the queue, which may have left. `list()` names each caller.
   */
  readonly waiters: readonly LockWaiter[];
}

export async function inspectKey(store: LockStore, key: string): Promise<LockInfo | undefined> {
  const view = await store.inspect(key);
  if (!view) return undefined;
  const holders = await Promise.all(view.holders.map((holder) => describeHolder(store, holder)));
  return {
    key,
    mode: modeOf(view.sharing),
    permits: permitsOf(view.sharing),
    holder: holders[0]!,
    holders,
    waiters: view.waiters.map(({ token, sharing, label }) => ({
      token,
      ...partsOf(token),
      label,
      mode: modeOf(sharing),
    })),
  };
}

async function describeHolder(store: LockStore, { token, leaseLeftMs }: HolderView): Promise<LockHolder> {
  const details = await store.describe(token);
  return {
    token,
    ...partsOf(token),
    label: details?.label,
    remaining: leaseLeftMs,
    fence: details?.fence,
    since: details && new Date(details.acquiredAt),
    traceparent: details?.traceparent,
    isKept: isKept(token),
  };
}
