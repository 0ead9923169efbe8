import type { ForcedUnlock } from '../errors/lock-lost.error.js';

export type { ForcedUnlock };

/**
 * Says with whom a lock shares its keys: nobody; all readers; or up to *n* holders that all named the same number
 * (a semaphore).
 */
export type Sharing = 'exclusive' | 'read' | `permits:${number}`;

/** Asks a store for a lock. */
export interface AcquireCommand {
  /** The keys, all or none, in their fixed order. */
  readonly keys: readonly string[];
  /** The owner. A second request with the same token changes nothing: the caller keeps what it has, and its place. */
  readonly token: string;
  readonly leaseMs: number;
  readonly sharing: Sharing;
  /** The caller's name for it, for people who look at the queue. */
  readonly label: string | undefined;
  /**
   * Whether to queue behind the holder: the store then notifies its listeners when it grants the lock to the token.
   * While it waits, the caller asks again about once a second; a waiter that does not ask for `ALIVE_MS` loses its
   * place.
   */
  readonly queue: boolean;
  /** Whether it queues already: if it has the lock now, it should have been notified. */
  readonly isQueued?: boolean;
  /** Whether it was notified that it has the lock now, and asks to confirm that. */
  readonly wasOffered?: boolean;
  /** Without `queue`: whether the caller polls. The store then tells the holder that the lock is contended. */
  readonly polls?: boolean;
  /**
   * Until when the caller waits, by the monotonic clock (`performance.now()`): a store that tells a waiter when to ask
   * again lets it ask just before that.
   */
  readonly waitsUntil?: number;
  /** Whether the caller wants strict order over all processes. A store without a common queue refuses this. */
  readonly fair?: boolean;
}

export interface Granted {
  readonly granted: true;
  /** Larger than every earlier fence of these keys. */
  readonly fence: number;
  /**
   * How many fences, from `fence` on, belong to this grant: one for the caller, and one for each hand-off inside its
   * process, which needs no call of the store.
   * @default 1
   */
  readonly fenceCount?: number;
  /** Whether another waiter is queued in the store for one of the keys. */
  readonly contended: boolean;
  /**
   * How long the lock lasts until its first renewal, in ms, if that is less than requested.
   * @default the requested lease
   */
  readonly leaseMs?: number;
  /** The token that got the grant, if it is not the one that asked: some stores use a fresh one for each attempt. */
  readonly token?: string;
}

export interface Busy {
  readonly granted: false;
  /** The owner token found under the first key that is held. */
  readonly holder: string;
  /** How long the holder's lease still lasts, in ms; `Infinity` for a key without an end. */
  readonly leaseLeftMs: number;
  /** How many waiters are queued in the store ahead of the caller. */
  readonly ahead: number;
  /** Every fence issued after this reply is larger: a grant with a smaller fence that arrives later is already over. */
  readonly fence: number;
  /**
   * Whether the token must not be used again, because a command that takes its keys away may still arrive. The store
   * has cancelled it, and the caller asks with a fresh token.
   * @default false
   */
  readonly spent?: boolean;
}

/** A lock of an owner, to renew or release. */
export interface OwnedLock {
  readonly keys: readonly string[];
  readonly token: string;
  readonly leaseMs: number;
}

/** The outcome of a renewal. Locks that it does not name were renewed. */
export interface RenewalOutcome {
  /** Locks that their token no longer owns, whole or in part. */
  readonly gone: readonly OwnedLock[];
  /** Locks whose outcome is unknown. */
  readonly unknown: readonly OwnedLock[];
}

/** The request of a waiter, to cancel. */
export type Cancellation = Pick<AcquireCommand, 'keys' | 'token' | 'leaseMs' | 'sharing' | 'label'>;

/** A holder of a key. */
export interface HolderView {
  /** The owner token, or what another tool wrote under the key. */
  readonly token: string;
  /** How long its lease still lasts, in ms; `Infinity` for a key without an end. */
  readonly leaseLeftMs: number;
}

/** A waiter in the queue of a key. */
export interface WaiterView {
  readonly token: string;
  readonly sharing: Sharing;
  readonly label: string | undefined;
}

/** The holders and the waiters of a key. */
export interface KeyView {
  readonly sharing: Sharing;
  /** One holder, if the key is not shared. */
  readonly holders: readonly HolderView[];
  /** The waiters, in their order. Without `fair`, only the first of each process. */
  readonly waiters: readonly WaiterView[];
}

/** What only the holder's own process knows about a lock. */
export interface LockDetails {
  readonly fence: number;
  /** When it was acquired, in ms since 1970. */
  readonly acquiredAt: number;
  readonly label: string | undefined;
}

/** Options of `forceUnlock`. */
export interface ForceUnlockOptions extends ForcedUnlock {
  /**
   * Releases only the lock of this token: the token of the holder that `inspect()` names, if it also shows the `fence`;
   * or one that was read from `lock.token`.
   * @default the lock of any holder
   */
  readonly token?: string;
}

/** Receives what a store reports to the waiters and holders of a process. */
export interface StoreListener {
  /** The beginning of all tokens of this listener, up to the last dot. */
  readonly source: string;
  /** The store granted the lock to a waiter. Returns false when the token is not one of its waiters. */
  granted(token: string, grant: Granted): boolean;
  /**
   * A waiter must ask for the lock again: it was granted it, or is to be granted it now. Returns false when the token
   * is not one of its waiters.
   */
  offered(token: string): boolean;
  /**
   * A lock is contended: another process waits for it. Reported for tokens that end in `+`, and by stores whose waiters
   * poll.
   */
  contended(token: string): void;
  /** The lock of a token was released by force. */
  forceReleased(token: string, forced: ForcedUnlock): void;
  /**
   * Describes the lock of a token, which belongs to its present holder alone from now on; undefined when it is not held
   * here.
   */
  describe(token: string): LockDetails | undefined;
  /** Messages or locks may have been lost: waiters ask again, holders verify. */
  resync(): void;
}

/** How long a waiter counts as alive after it asked, in ms. */
export const ALIVE_MS = 5_000;

/**
 * How long a waiter is first handed the lock at most, in ms, because its process may be stopped, or its host may have
 * vanished. A live process renews it. This is as long as a waiter counts as alive: so waiters that are stopped together
 * keep the others out for no longer than one of them.
 */
export const FIRST_LEASE_MS = ALIVE_MS;

/**
 * Fences that come with a grant: for the caller, and for some of those who may queue behind it in its process
 * meanwhile.
 */
const FENCES = 4;

/** Fences that come with `reserve`, and with a grant to a process in which others wait already. */
export const HAND_OFF_FENCES = 64;

/**
 * Ends the token of a lock that others wait for in its process: its holder is told when others begin to wait for it.
 */
export const LOCAL_WAITERS_MARK = '+';

/**
 * Ends what stands in the place of the token of a lock that was given back, and whose key stays for some time: it is no
 * token any more.
 */
export const KEPT_MARK = ' kept';

export const hasLocalWaiters = (token: string): boolean => token.endsWith(LOCAL_WAITERS_MARK);

/** How many fences a grant comes with: one for the caller, and one for each hand-off inside its process. */
export const fenceCountFor = (token: string): number => (hasLocalWaiters(token) ? HAND_OFF_FENCES : FENCES);

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
