import type { LostReason } from '../errors/lock-lost.error.js';
import type { TimeoutReason } from '../errors/lock-timeout.error.js';

interface OfLock {
  readonly keys: readonly string[];
  /** As it was given to the call. Name what the lock is for there: keys are too many for a metric. */
  readonly label: string | undefined;
}

/** How a call for a lock went. All times are in ms. */
export interface OfCall extends OfLock {
  /** From the call until this event. */
  readonly waitedMs: number;
}

/** What a lock did that a call has. */
export interface OfHeld extends OfLock {
  readonly fence: number;
  /** Whether the call is inside another one that has the key. */
  readonly nested: boolean;
  /** From the grant until this event. */
  readonly heldMs: number;
}

/**
 * What happened to a lock of this process. Each call for a lock ends in `acquired`, `timeout`, `unavailable` or `aborted`, after
 * `waited` if it had to queue (unless the call itself was wrong: a `LockOptionsError` or `LockKeyError` is no event); and each lock
 * that was `acquired` ends in `released` or `lost`.
 */
export type LockEvent =
  /** The caller has the lock. `nested`: it is inside another call that has the key. */
  | (OfCall & { readonly type: 'acquired'; readonly fence: number; readonly nested: boolean })
  /** The caller had to queue, and does not any more; what came of it follows. */
  | (OfCall & { readonly type: 'waited' })
  /** The key was held for all of `wait`, or too many waited. `waitMs`: what it was ready to wait, `0` if it only tried. */
  | (OfCall & { readonly type: 'timeout'; readonly reason: TimeoutReason; readonly waitMs: number; readonly holder: string | undefined; readonly ahead: number })
  /** The store did not answer, or the app is shutting down. */
  | (OfCall & { readonly type: 'unavailable'; readonly error: unknown })
  /** The `signal` of the call aborted, or the client of its HTTP request went away. `reason`: what the call rejects with. */
  | (OfCall & { readonly type: 'aborted'; readonly reason: unknown })
  /** The store confirmed that the lock goes on. `remainingMs`: for how long, if it is the last time. */
  | (OfHeld & { readonly type: 'renewed'; readonly remainingMs: number })
  /** The caller gave it back. */
  | (OfHeld & { readonly type: 'released' })
  /** It ended while the caller was inside. */
  | (OfHeld & { readonly type: 'lost'; readonly reason: LostReason });

type News<Event> = Event extends OfHeld ? Omit<Event, keyof OfHeld> : never;

/** What is to be said of a lock besides what it knows itself. */
export type HeldNews = News<LockEvent>;
