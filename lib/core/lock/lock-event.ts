import type { LostReason } from '../../errors/lock-lost.error.js';
import type { ForcedUnlock } from '../../store/lock-store.js';
import type { TimeoutReason } from '../../errors/lock-timeout.error.js';

interface Told {
  readonly keys: readonly string[];
  /** As it was given to the call; `Class.method` where `@WithLock` was given none. Keys are too many for a metric, labels are few. */
  readonly label: string | undefined;
}

/** Of a call for a lock. All times are in ms. */
export interface LockCallEvent extends Told {
  /** From the call until this event. */
  readonly waitedMs: number;
}

/** Of a lock that a call has. */
export interface HeldLockEvent extends Told {
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
  | (LockCallEvent & { readonly type: 'acquired'; readonly fence: number; readonly nested: boolean })
  /** The caller had to queue, and does not any more; what came of it follows. */
  | (LockCallEvent & { readonly type: 'waited' })
  /** The key was held for all of `wait`, or too many waited. `waitMs`: what it was ready to wait, `0` if it only tried. */
  | (LockCallEvent & {
      readonly type: 'timeout';
      readonly reason: TimeoutReason;
      readonly waitMs: number;
      readonly holder: string | undefined;
      readonly ahead: number;
    })
  /** The store did not answer, or the app is shutting down. */
  | (LockCallEvent & { readonly type: 'unavailable'; readonly error: unknown })
  /** The `signal` of the call aborted, or the client of its HTTP request went away. `reason`: what the call rejects with. */
  | (LockCallEvent & { readonly type: 'aborted'; readonly reason: unknown })
  /** The store confirmed that the lock goes on. `remainingMs`: for how long, if it is the last time. */
  | (HeldLockEvent & { readonly type: 'renewed'; readonly remainingMs: number })
  /** The caller gave it back. */
  | (HeldLockEvent & { readonly type: 'released' })
  /** It ended while the caller was inside. `forced`: who took it with `forceUnlock`, and why. */
  | (HeldLockEvent & { readonly type: 'lost'; readonly reason: LostReason; readonly forced: ForcedUnlock | undefined })
  /** This process took a key away with `forceUnlock`; whoever had it hears that it is `lost`, with `forced`. `token`: whose it had to be. */
  | (Told & ForcedUnlock & { readonly type: 'forced'; readonly token: string | undefined });

type News<Event> = Event extends HeldLockEvent ? Omit<Event, keyof HeldLockEvent> : never;

/** What is to be said of a lock besides what it knows itself. */
export type HeldNews = News<LockEvent>;
