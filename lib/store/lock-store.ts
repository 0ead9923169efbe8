/** What a store needs to know to give a lock. */
export interface AcquireCommand {
  /** The keys, all or none, in their fixed order. */
  readonly keys: readonly string[];
  /** The owner. Asking again with the same token is answered as the first time: the caller keeps what it has, and its place. */
  readonly token: string;
  readonly leaseMs: number;
  /**
   * Whether to queue behind the holder: the store then tells its listeners when the token is given the lock. While it waits
   * the caller asks again every second or so; a waiter that does not for `ALIVE_MS` loses its place.
   */
  readonly queue: boolean;
  /** Whether it queues already: if it has the lock now, it should have been told. */
  readonly again?: boolean;
}

export interface Granted {
  readonly granted: true;
  /** Larger than every fence of these keys before it. The first of `fencesFor(token)` numbers that are this grant's own. */
  readonly fence: number;
  /** Whether somebody else is queued in the store for one of the keys. */
  readonly contended: boolean;
}

export interface Held {
  readonly granted: false;
  /** The owner token found under the first key that is held. */
  readonly holder: string;
  /** How long the holder's lease still lasts, in ms; `Infinity` for a key without an end. */
  readonly leaseLeftMs: number;
  /** How many are queued in the store before the one who asks. */
  readonly ahead: number;
  /** Every fence given after this answer is larger: a grant with a smaller one that is heard of later is over already. */
  readonly fence: number;
}

/** One lock: of a holder to renew or release, or of a waiter to cancel. */
export interface Renewal {
  readonly keys: readonly string[];
  readonly token: string;
  readonly leaseMs: number;
}

/** What a store tells those who wait on it or hold a lock of it. */
export interface StoreListener {
  /** What all tokens of this listener begin with, up to the last dot. */
  readonly source: string;
  /** A waiter was given the lock. Answers false when the token is not one of its waiters. */
  granted(token: string, grant: Granted): boolean;
  /** Somebody began to queue for a lock that is marked as handed on inside its process. */
  wanted(token: string): void;
  /** Messages may have been missed: whoever waits should ask again. */
  missed(): void;
}

/** How long a waiter counts as alive after it asked, in ms. */
export const ALIVE_MS = 5_000;

/** Fences given at once to a lock that may be handed on inside its process. */
const FENCES_OF_A_RUN = 64;

/** Ends the token of a lock that may be handed on inside its process. */
export const RUN_MARK = '+';

/** How many fences a grant comes with: one for the caller, and one for each hand-off inside its process. */
export const fencesFor = (token: string): number => (token.endsWith(RUN_MARK) ? FENCES_OF_A_RUN : 1);

/**
 * Where locks live. Each call is atomic, touches nothing that belongs to another token, and settles within the
 * store's own time-out; it rejects with `LockUnavailableError` and nothing else.
 *
 * A key that is released goes straight to the first waiter in its queue, in the same step.
 */
export interface LockStore {
  /** Begins to connect, when the app boots. Neither waits nor throws. */
  open?(): void;
  /** From now on tells the listener about its tokens. */
  listen(listener: StoreListener): void;
  /**
   * Takes all keys for the token, in their order; or queues for the first that is held, keeping those before it; or, without
   * `queue`, takes none. If the outcome can't be known, the store itself gives back what it may have taken.
   */
  acquire(command: AcquireCommand): Promise<Granted | Held>;
  /** Leaves the queues, and gives back what the token may have been given meanwhile. Never rejects: the store goes on trying. */
  cancel(command: Renewal): Promise<void>;
  /** Pushes the leases out, never nearer. Answers those that are not their token's any more, whole or in part. */
  renew(renewals: readonly Renewal[]): Promise<readonly Renewal[]>;
  /** Renews one lock and gives it new fences, as for a new grant. Answers undefined when it is not the token's any more. */
  reserve(lock: Renewal): Promise<Granted | undefined>;
  /** Hands each key to its next waiter, or frees it. Answers false when one of them was not the token's any more, and leaves that one alone. */
  release(lock: Renewal): Promise<boolean>;
  isLocked(key: string): Promise<boolean>;
  /** Takes a key from whoever holds it. Answers false when nobody did. */
  forceRelease(key: string): Promise<boolean>;
  /** Ends what the store started itself, e.g. its own connection. */
  close(): Promise<void>;
}
