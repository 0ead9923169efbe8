import type { ForcedUnlock } from '../errors/lock-lost.error.js';
import type { KeyView, LockDetails } from './key-view.js';
import type { AcquireCommand, Busy, Cancellation, Granted, OwnedLock, RenewalOutcome } from './lock-command.js';
import type { FoundProcesses, ProcessQuestion, ProcessReply } from './process-question.js';
import type { StoreListener } from './store-listener.js';

export * from './grant-rules.js';
export type * from './key-view.js';
export * from './lock-command.js';
export * from './process-question.js';
export type * from './store-listener.js';
export type { ForcedUnlock };

/** Options of `forceUnlock`. */
export interface ForceUnlockOptions extends ForcedUnlock {
  /**
   * Releases only the lock of this token: the token of the holder that `inspect()` names, if it also shows the `fence`;
   * or one that was read from `lock.token`.
   * @default the lock of any holder
   */
  readonly token?: string;
}

/**
 * Stores locks. Each call is atomic, touches nothing that belongs to another token, and settles within the
 * store's own time-out. It rejects only with `LockUnavailableError`, unless it names another error.
 *
 * A release hands the key to the first waiter in its queue, in the same step.
 */
export interface LockStore {
  /** The stores that this store is made of, if a majority of several decides. */
  readonly nodes?: readonly LockStore[];
  /** Begins to connect, when the app boots. Neither waits nor throws. */
  open?(): void;
  /** Reports to the listener, from now on, what happens to its tokens. */
  listen(listener: StoreListener): void;
  /**
   * Makes sure that all keys can be reached, as far as that is in doubt. A call for several keys asks for it before it
   * takes their turns in this process: while a part of the store is down, it keeps no other call from the keys of the
   * rest. Returns nothing when there is no doubt. Default: there is none.
   *
   * @throws LockUnavailableError, or what `acquire` throws for these keys
   */
  reach?(keys: readonly string[]): Promise<unknown> | undefined;
  /**
   * Acquires all keys for the token, in their order; or queues for the first that is held, keeping those before it; or,
   * without `queue`, acquires none. If the outcome can't be known, the store itself releases what it may have acquired.
   *
   * The first waiter in the queue enters as soon as it may share the key with its holders, and never before one that
   * came earlier.
   *
   * @throws LockOptionsError when the key is shared with another number of permits (the token has left the queue then),
   *   or when the store does not support what the command asks for
   */
  acquire(command: AcquireCommand): Promise<Granted | Busy>;
  /**
   * Leaves the queues, and releases what the token may have been granted by now. Never rejects: the store goes on
   * trying.
   */
  cancel(command: Cancellation): Promise<void>;
  /**
   * Renews the leases: moves each end later, never earlier. A failure of one lock does not affect the others.
   *
   * @throws LockUnavailableError when the outcome of all of them is unknown
   */
  renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome>;
  /**
   * Finds the locks that their token no longer owns. It renews none: each lock comes with what is left of its lease, or
   * less. So it need not wait for replicas, as `renew` does. Default: `renew`.
   */
  missing?(locks: readonly OwnedLock[]): Promise<RenewalOutcome>;
  /**
   * Splits locks into the groups that `renew` may take in one call, because an unreachable part must not hold up the
   * rest. Default: one group.
   */
  renewalGroups?<Lock extends OwnedLock>(locks: readonly Lock[]): readonly (readonly Lock[])[];
  /**
   * Returns which of several keys it acquires first: a waiter keeps that one while it waits for another. Returns
   * undefined when a waiter keeps nothing in the store. Default: the first key.
   */
  firstOf?(keys: readonly string[]): string | undefined;
  /**
   * Renews one lock and issues new fences for it, as for a new grant. Returns undefined when the token is no longer its
   * only owner.
   */
  reserve(lock: OwnedLock): Promise<Granted | undefined>;
  /**
   * Hands each key to its next waiter, or frees it. With `keepMs` it does so when that time is over, and not before: no
   * later command of the token changes that. Returns false when the token no longer owned one of the keys, and does not
   * touch that key.
   */
  release(lock: OwnedLock, keepMs?: number): Promise<boolean>;
  /**
   * Makes the lock of a reader exclusive, with new fences, if it is the only reader. Returns undefined when it is not,
   * or when the lock is lost.
   *
   * @param number counts the upgrades of this lock, from 1 on. An upgrade that arrives late, after its end or after a
   *   later one, is refused
   */
  upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined>;
  /**
   * Makes an exclusive lock the lock of a reader, and lets in the readers that are next in the queue. Returns false
   * when the lock is lost.
   *
   * @param number ends all upgrades up to this one, whether they have arrived or not, and changes nothing if a later
   *   one has made the lock exclusive. 0: the lock was acquired as an exclusive one
   */
  downgrade(lock: OwnedLock, number: number): Promise<boolean>;
  isLocked(key: string): Promise<boolean>;
  /** Returns the holders and waiters of a key; undefined when it is free. */
  inspect(key: string): Promise<KeyView | undefined>;
  /** Asks the holder's process what it knows about the lock of a token; undefined when it does not answer in time. */
  describe(token: string): Promise<LockDetails | undefined>;
  /**
   * Finds the live processes that share the store. Settles within the store's own time-out and never rejects. Default:
   * only this process is known.
   */
  findProcesses?(): Promise<FoundProcesses>;
  /**
   * Asks a process that was found, by its source. Settles within the store's own time-out and never rejects. Default:
   * no process can be asked.
   */
  askProcess?(source: string, question: ProcessQuestion): Promise<ProcessReply>;
  /**
   * Releases a key from all its holders, or only from the given token, and notifies them. Returns false when nobody
   * held it, or not that token.
   */
  forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean>;
  /**
   * Says what makes the store unfit to keep locks, or slow, although it grants them: one sentence for each problem, for
   * operators. Settles within the store's own time-out and never rejects. Default: nothing.
   */
  problems?(): Promise<readonly string[]>;
  /** Closes what the store opened itself, e.g. its own connection. */
  close(): Promise<void>;
}
