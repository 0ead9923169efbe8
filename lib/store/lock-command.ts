import type { LockUnavailableError } from '../errors/lock-unavailable.error.js';

/**
 * Says with whom a lock shares its keys: nobody; all readers; or up to *n* holders that all named the same number
 * (a semaphore).
 */
export type Sharing = 'exclusive' | 'read' | `permits:${number}`;

/** Returns the number of permits of a semaphore; undefined for any other lock. */
export function permitsOf(sharing: Sharing): number | undefined {
  return sharing.startsWith('permits:') ? Number(sharing.slice('permits:'.length)) : undefined;
}

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
  /**
   * The number of the upgrade that made a reader the writer, for as long as it relies on that: a renewal is in vain
   * then where it is a reader again. Default: none.
   */
  readonly upgrade?: number;
}

/** The outcome of a renewal. Locks that it does not name were renewed. */
export interface RenewalOutcome {
  /** Locks that their token no longer owns, whole or in part; or not as the writer, though it has to be that. */
  readonly gone: readonly OwnedLock[];
  /** Locks whose outcome is unknown. */
  readonly unknown: readonly OwnedLock[];
  /** Why it is unknown, as far as the store knows. */
  readonly error?: LockUnavailableError;
}

/** The request of a waiter, to cancel. */
export type Cancellation = Pick<AcquireCommand, 'keys' | 'token' | 'leaseMs' | 'sharing' | 'label'>;
