import type { ListedHolder, ListedLock, ListedWaiters, LockList } from '../../core/lock-list.js';

/** What was seen at one moment. */
export interface Look {
  readonly list: LockList;
  /** Which processes are alive: their instances. Undefined if there may be others. */
  readonly live: ReadonlySet<string> | undefined;
  /** How long ago the look before this one began, in ms; 0 for the first. */
  readonly sinceMs: number;
}

/** Who has a key according to the store: their tokens, with what is left of their leases in ms. */
export type Stored = readonly { readonly token: string; readonly leaseLeftMs: number }[];

/** What is known of a key from the looks before. */
export interface SeenKey {
  readonly lock: ListedLock;
  readonly holders: readonly SeenHolder[];
  readonly waiters: readonly ListedWaiters[];
  readonly waiterCount: number;
}

/** A holder, as it was last seen. */
export type SeenHolder = ListedHolder & { readonly isOrphaned?: boolean };
