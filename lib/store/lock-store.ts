/** What a store needs to know to give a lock. */
export interface AcquireCommand {
  /** The keys, all or none, in their fixed order. */
  readonly keys: readonly string[];
  /** The owner. Asking again with the same token is answered as the first time: the caller keeps what it has. */
  readonly token: string;
  readonly leaseMs: number;
}

export interface Granted {
  readonly granted: true;
  /** Larger than every fence of these keys before it. */
  readonly fence: number;
}

export interface Held {
  readonly granted: false;
  /** The owner token found under the first key that is held. */
  readonly holder: string;
  /** How long the holder's lease still lasts, in ms; `Infinity` for a key without an end. */
  readonly leaseLeftMs: number;
}

/** One lock in a batch of renewals. */
export interface Renewal {
  readonly keys: readonly string[];
  readonly token: string;
  readonly leaseMs: number;
}

/**
 * Where locks live. Each call is atomic, touches nothing that belongs to another token, and settles within the
 * store's own time-out; it rejects with `LockUnavailableError` and nothing else.
 */
export interface LockStore {
  /** Begins to connect, when the app boots. Neither waits nor throws. */
  open?(): void;
  /** Takes all keys for the token, or none. If the outcome can't be known, the store itself gives back what it may have taken. */
  acquire(command: AcquireCommand): Promise<Granted | Held>;
  /** Pushes the leases out, never nearer. Answers for each lock whether it is still its token's. */
  renew(renewals: readonly Renewal[]): Promise<readonly boolean[]>;
  /** Frees the keys. Answers false when one of them was not the token's any more, and leaves that one alone. */
  release(lock: Renewal): Promise<boolean>;
  isLocked(key: string): Promise<boolean>;
  /** Frees a key whoever holds it. Answers false when nobody did. */
  forceRelease(key: string): Promise<boolean>;
  /** Ends what the store started itself, e.g. its own connection. */
  close(): Promise<void>;
}
