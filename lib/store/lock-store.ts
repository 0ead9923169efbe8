import type { ForcedUnlock } from '../errors/lock-lost.error.js';

export type { ForcedUnlock };

/**
 * How a lock shares its keys: with nobody; with all readers; or with so many others that all named the same number
 * (a semaphore).
 */
export type Sharing = 'exclusive' | 'read' | `permits:${number}`;

/** What a store needs to know to give a lock. */
export interface AcquireCommand {
  /** The keys, all or none, in their fixed order. */
  readonly keys: readonly string[];
  /** The owner. Asking again with the same token is answered as the first time: the caller keeps what it has, and its place. */
  readonly token: string;
  readonly leaseMs: number;
  readonly sharing: Sharing;
  /** What the caller calls it, for people who look at the queue. */
  readonly label: string | undefined;
  /**
   * Whether to queue behind the holder: the store then tells its listeners when the token is given the lock. While it waits
   * the caller asks again every second or so; a waiter that does not for `ALIVE_MS` loses its place.
   */
  readonly queue: boolean;
  /** Whether it queues already: if it has the lock now, it should have been told. */
  readonly isQueued?: boolean;
  /** Whether it was told that it has the lock now, and asks to make sure of it. */
  readonly wasOffered?: boolean;
  /** Without `queue`: whether the caller waits all the same, by asking again; the holder is told that somebody does. */
  readonly polls?: boolean;
  /** Until when the caller waits, by the monotonic clock (`performance.now()`): a store that tells it when to ask again lets it ask just before that. */
  readonly waitsUntil?: number;
  /** Whether the caller wants strict order over all processes. A store that has no common queue refuses it. */
  readonly fair?: boolean;
}

export interface Granted {
  readonly granted: true;
  /** Larger than every fence of these keys before it. */
  readonly fence: number;
  /**
   * How many numbers, from `fence` on, are this grant's own: one for the caller, and one for each other of its process that the lock may go on to without a word
   * to the store. @default 1
   */
  readonly fenceCount?: number;
  /** Whether somebody else is queued in the store for one of the keys. */
  readonly contended: boolean;
  /** How long it lasts at first, in ms, when that is less than was asked for: until it is renewed. @default what was asked for */
  readonly leaseMs?: number;
  /** The token that it was given to, when that is not the one that asked: some stores take a fresh one for each try. */
  readonly token?: string;
}

export interface Busy {
  readonly granted: false;
  /** The owner token found under the first key that is held. */
  readonly holder: string;
  /** How long the holder's lease still lasts, in ms; `Infinity` for a key without an end. */
  readonly leaseLeftMs: number;
  /** How many are queued in the store before the one who asks. */
  readonly ahead: number;
  /** Every fence given after this answer is larger: a grant with a smaller one that is heard of later is over already. */
  readonly fence: number;
  /**
   * Whether the token must not be used again: a command that takes from it what it has may still arrive. The store has cancelled it, and
   * the caller asks with a fresh one. @default false
   */
  readonly spent?: boolean;
}

/** One lock of a holder, to renew or release. */
export interface OwnedLock {
  readonly keys: readonly string[];
  readonly token: string;
  readonly leaseMs: number;
}

/** What came of a renewal. The locks that it does not name were renewed. */
export interface RenewalOutcome {
  /** Those that are not their token's any more, whole or in part. */
  readonly gone: readonly OwnedLock[];
  /** Those of which it is not known. */
  readonly unknown: readonly OwnedLock[];
}

/** The lock that a waiter asked for, to cancel. */
export type Cancellation = Pick<AcquireCommand, 'keys' | 'token' | 'leaseMs' | 'sharing' | 'label'>;

/** Somebody who has a key. */
export interface HolderView {
  /** The owner token, or what another tool wrote under the key. */
  readonly token: string;
  /** How long its lease still lasts, in ms; `Infinity` for a key without an end. */
  readonly leaseLeftMs: number;
}

/** Somebody in the queue of a key. */
export interface WaiterView {
  readonly token: string;
  readonly sharing: Sharing;
  readonly label: string | undefined;
}

/** Who has a key, and who waits for it. */
export interface KeyView {
  readonly sharing: Sharing;
  /** One, if it is not shared. */
  readonly holders: readonly HolderView[];
  /** In their order. Of a process that does not want it `fair`, the first only. */
  readonly waiters: readonly WaiterView[];
}

/** What only the holder's own process knows of a lock. */
export interface LockDetails {
  readonly fence: number;
  /** When it was acquired, in ms since 1970. */
  readonly acquiredAt: number;
  readonly label: string | undefined;
}

/** What is said to `forceUnlock`. */
export interface ForceUnlockOptions extends ForcedUnlock {
  /**
   * Only the lock of this token is taken: of the holder that `inspect()` names, if it also knows its `fence`; or of who has read `lock.token`.
   * @default that of whoever has the key
   */
  readonly token?: string;
}

/** What a store tells those who wait on it or hold a lock of it. */
export interface StoreListener {
  /** What all tokens of this listener begin with, up to the last dot. */
  readonly source: string;
  /** A waiter was given the lock. Answers false when the token is not one of its waiters. */
  granted(token: string, grant: Granted): boolean;
  /** A waiter should ask for the lock again: it was given it, or is to be given it now. Answers false when it is not one of its waiters. */
  offered(token: string): boolean;
  /** Somebody waits for a lock: of one whose token ends in `+`, or where waiters ask again and again. */
  contended(token: string): void;
  /** The lock of a token was taken away by force. */
  lost(token: string, forced: ForcedUnlock): void;
  /** What is known of the lock of a token, which is that of its present holder alone from now on; undefined when it is not held here. */
  describe(token: string): LockDetails | undefined;
  /** Messages may have been missed, or locks been lost: whoever waits should ask again, whoever holds a lock should look. */
  resync(): void;
}

/** How long a waiter counts as alive after it asked, in ms. */
export const ALIVE_MS = 5_000;

/**
 * How long a waiter is handed the lock at most, in ms: it may stand still, or its host be gone without a word. Whoever is there has it
 * lengthened. As long as a waiter counts as alive: so those who stand still together keep the others out for no longer than one of them.
 */
export const FIRST_LEASE_MS = ALIVE_MS;

/** Fences that come with a grant: for the caller, and for some of those who may queue behind it in its process meanwhile. */
const FENCES = 4;

/** Fences that come with `reserve`, and with a grant to a process in which others wait already. */
export const FENCES_OF_A_RUN = 64;

/** Ends the token of a lock that others wait for in its process: its holder is told when others begin to wait for it. */
export const RUN_MARK = '+';

/** Ends what stands in the place of the token of a lock that was given back, and whose key stays for some time: it is no token any more. */
export const KEPT_MARK = ' kept';

export const isRun = (token: string): boolean => token.endsWith(RUN_MARK);

/** How many fences a grant comes with: one for the caller, and one for each hand-off inside its process. */
export const fenceCountFor = (token: string): number => (isRun(token) ? FENCES_OF_A_RUN : FENCES);

/**
 * Where locks live. Each call is atomic, touches nothing that belongs to another token, and settles within the
 * store's own time-out; it rejects with `LockUnavailableError` and nothing else.
 *
 * A key that is released goes straight to the first waiter in its queue, in the same step.
 */
export interface LockStore {
  /** The stores that it is made of, if a majority of several decides. */
  readonly nodes?: readonly LockStore[];
  /** Begins to connect, when the app boots. Neither waits nor throws. */
  open?(): void;
  /** From now on tells the listener about its tokens. */
  listen(listener: StoreListener): void;
  /**
   * Takes all keys for the token, in their order; or queues for the first that is held, keeping those before it; or, without
   * `queue`, takes none. If the outcome can't be known, the store itself gives back what it may have taken.
   *
   * Who is first in the queue is let in as soon as it may share the key with those who have it, and never before one that came earlier.
   *
   * @throws LockOptionsError when the key is shared by another number of permits; it has left the queue then. Or when the store can't do
   * what is asked for
   */
  acquire(command: AcquireCommand): Promise<Granted | Busy>;
  /** Leaves the queues, and gives back what the token may have been given meanwhile. Never rejects: the store goes on trying. */
  cancel(command: Cancellation): Promise<void>;
  /**
   * Pushes the leases out, never nearer. What goes wrong with one of them concerns no other.
   *
   * @throws LockUnavailableError when nothing is known of any
   */
  renew(renewals: readonly OwnedLock[]): Promise<RenewalOutcome>;
  /**
   * Answers those that are not their token's any more, and pushes no lease out: it names what is left of it, or less. So it need not wait for
   * those whom `renew` waits for. Default: `renew`.
   */
  missing?(locks: readonly OwnedLock[]): Promise<RenewalOutcome>;
  /** Splits locks into those that `renew` may take in one call: what can't be reached must not hold up the rest. Default: all in one. */
  renewalGroups?<Lock extends OwnedLock>(locks: readonly Lock[]): readonly (readonly Lock[])[];
  /**
   * Which of several keys it takes first: a caller has that one while it waits for another. Answers undefined when a caller that waits has
   * nothing in the store. Default: the first of them.
   */
  firstOf?(keys: readonly string[]): string | undefined;
  /** Renews one lock and gives it new fences, as for a new grant. Answers undefined when it is not the token's alone any more. */
  reserve(lock: OwnedLock): Promise<Granted | undefined>;
  /**
   * Hands each key to its next waiter, or frees it; at once, or with `keepMs` when that time is over, and not before: nothing that the token
   * asks for changes that. Answers false when one of them was not the token's any more, and leaves that one alone.
   */
  release(lock: OwnedLock, keepMs?: number): Promise<boolean>;
  /**
   * Makes the lock of a reader exclusive, with new fences, if it is the only one. Answers undefined when it is not, or lost.
   *
   * @param number which upgrade of this lock it is, from 1 on. One that comes late, after its end or a later one, is refused
   */
  upgrade(lock: OwnedLock, number: number): Promise<Granted | undefined>;
  /**
   * Makes an exclusive lock that of a reader, and lets in those readers who are next. Answers false when it is lost.
   *
   * @param number ends all upgrades up to this one, whether they have come or not; and changes nothing when a later one has made it exclusive. 0: it came
   * as an exclusive one
   */
  downgrade(lock: OwnedLock, number: number): Promise<boolean>;
  isLocked(key: string): Promise<boolean>;
  /** Who has a key and who waits for it; undefined when it is free. */
  inspect(key: string): Promise<KeyView | undefined>;
  /** Asks the holder's process what it knows of the lock of a token; undefined when it does not answer soon. */
  describe(token: string): Promise<LockDetails | undefined>;
  /** Takes a key from whoever holds it, or from that token alone, and tells them. Answers false when nobody did, or not that token. */
  forceRelease(key: string, options?: ForceUnlockOptions): Promise<boolean>;
  /**
   * What makes it unfit to keep locks, or slow, although it grants them: one sentence each, for operators. Settles within the store's own time-out and
   * never rejects. Default: nothing.
   */
  problems?(): Promise<readonly string[]>;
  /** Ends what the store started itself, e.g. its own connection. */
  close(): Promise<void>;
}
