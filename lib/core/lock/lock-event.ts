import type { LostReason } from '../../errors/lock-lost.error.js';
import type { ForcedUnlock } from '../../store/lock-store.js';
import type { TimeoutReason } from '../../errors/lock-timeout.error.js';
import type { SharedMode } from '../request/held-mode.js';

interface Told {
  readonly keys: readonly string[];
  /**
   * The `label` of the call; `Class.method` if `@WithLock` has none. There are few labels, but too many keys for a
   * metric.
   */
  readonly label: string | undefined;
  /** The method with `@WithLock` that called: `Class.method`. Undefined for a call by hand. */
  readonly method: string | undefined;
  /**
   * The key of that `@WithLock` as it is written there, with its placeholders: `account:<userId>`. Several are joined
   * by a comma. Undefined when a function makes the key, and for a call by hand.
   */
  readonly template: string | undefined;
}

/** Tells which call an event is about. */
export interface ToldOfCall extends Told {
  /**
   * Counts the calls of this `LockService`. All events of a call, and of the lock that it acquires, have the same
   * number.
   */
  readonly id: number;
  /** How the call shares the keys; `'permit'` for a semaphore. `'write'` is told as `'exclusive'`. */
  readonly mode: SharedMode;
}

/** Reports a call for a lock. All times are in ms. */
export interface LockCallEvent extends ToldOfCall {
  /** From the call until this event. */
  readonly waitedMs: number;
}

/** Reports a lock that a call holds. */
export interface HeldLockEvent extends ToldOfCall {
  readonly fence: number;
  /** Whether the call is nested in a call that holds the key. */
  readonly nested: boolean;
  /** From the grant until this event. */
  readonly heldMs: number;
}

/**
 * Reports what happened to a lock of this process. Each call for a lock ends in `acquired`, `timeout`, `unavailable` or
 * `aborted`. If it has to wait, there is a `queued` when its wait begins, and a `waited` when it is over. A wrong call,
 * which throws `LockOptionsError` or `LockKeyError`, makes no event. Each lock that was `acquired` ends in `released`
 * or `lost`.
 */
export type LockEvent =
  /**
   * The caller has acquired the lock. `nested`: inside a call that holds the key. `remainingMs`: how long the lock
   * lasts without a renewal. `traceparent`: the span of the lock, as W3C Trace Context writes it; undefined without a
   * tracer.
   */
  | (LockCallEvent & {
      readonly type: 'acquired';
      readonly fence: number;
      readonly nested: boolean;
      readonly remainingMs: number;
      readonly traceparent: string | undefined;
    })
  /**
   * The caller begins to wait, in this process or in the store. It comes once, however often the caller waits.
   * `holder`:
   * `host:pid` of the process that has the key, where it is known. `ahead`: how many callers wait before it, as far as
   * is known. `waitMs`: how long it waits at most; `Infinity` without a limit. `holding`: the keys that it holds while
   * it waits, because it is inside other calls; callers that wait for each other's are deadlocked.
   */
  | (LockCallEvent & {
      readonly type: 'queued';
      readonly waitMs: number;
      readonly holder: string | undefined;
      readonly ahead: number;
      readonly holding: readonly string[];
    })
  /** The caller that was `queued` has stopped waiting; the event of its outcome follows. */
  | (LockCallEvent & { readonly type: 'waited' })
  /**
   * The key was held for all of `wait`, or too many callers waited. `waitMs`: how long the call would have waited at
   * most, `0` for one try.
   */
  | (LockCallEvent & {
      readonly type: 'timeout';
      readonly reason: TimeoutReason;
      readonly waitMs: number;
      readonly holder: string | undefined;
      readonly ahead: number;
    })
  /** The store did not answer, or the app is shutting down. */
  | (LockCallEvent & { readonly type: 'unavailable'; readonly error: unknown })
  /**
   * The `signal` of the call aborted, or the client of its HTTP request went away. `reason`: what the call rejects
   * with.
   */
  | (LockCallEvent & { readonly type: 'aborted'; readonly reason: unknown })
  /**
   * The store confirmed a renewal. `remainingMs`: how long the lock lasts without another one. `marginMs`: how much of
   * the lease was left when the reply came, without this renewal. `leaseMs`: how long that lease was: 5 s at most
   * before the first renewal of a lock that was waited for. The watchdog renews a third of the way through the lease,
   * so a margin far below two thirds of `leaseMs` tells of a slow store or a stalled process.
   */
  | (HeldLockEvent & {
      readonly type: 'renewed';
      readonly remainingMs: number;
      readonly marginMs: number;
      readonly leaseMs: number;
    })
  /**
   * The lock has been held for longer than `warnAfter` of its call. It comes once for each lock. `token`: its owner,
   * for
   * `forceUnlock`.
   */
  | (HeldLockEvent & { readonly type: 'overdue'; readonly warnAfterMs: number; readonly token: string })
  /** The caller released the lock. */
  | (HeldLockEvent & { readonly type: 'released' })
  /**
   * The lock ended while the caller was inside. `forced`: who released it with `forceUnlock`, and why. `token`: its
   * owner until then; undefined for the reason `unlocked`.
   */
  | (HeldLockEvent & {
      readonly type: 'lost';
      readonly reason: LostReason;
      readonly forced: ForcedUnlock | undefined;
      readonly token: string | undefined;
    })
  /**
   * This process released a key with `forceUnlock`; its holder gets `lost`, with `forced`. `token`: the only owner it
   * was to be released from. `tokens`: that one; or all owners that it had when the release was sent.
   */
  | (Told &
      ForcedUnlock & {
        readonly type: 'forced';
        readonly token: string | undefined;
        readonly tokens: readonly string[];
      });

type News<Event, Told> = Event extends Told ? Omit<Event, keyof Told> : never;

/** What is to be said of a call besides what is known of it. */
export type CallNews = News<LockEvent, LockCallEvent>;

/** What is to be said of a lock besides what it knows itself. */
export type HeldNews = News<LockEvent, HeldLockEvent>;
