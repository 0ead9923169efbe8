import { now } from '../../clock/deadline.js';
import type { TimeoutFacts, TimeoutReason } from '../../errors/lock-timeout.error.js';
import type { Busy } from '../../store/lock-store.js';
import { copyOptions, type ResolvedLockOptions, type Writable } from './lock-options.js';
import { holderOf } from './lock-token.js';

/** What a call has besides its options. */
interface CallParts {
  readonly keys: readonly string[];
  /** Lists the signals that end the wait. Called only when the call has to wait, and only once: use `signalsOf()`. */
  readonly waitSignals: () => readonly AbortSignal[];
  /** Called when the call begins to wait, maybe several times, if somebody wants to know. */
  readonly onWait?: ((begin: WaitBegin) => void) | undefined;
  /** Whether it only waits for its turn in this process, and leaves as soon as it has it. */
  readonly leavesAtOnce?: boolean | undefined;
  /** The keys for which it keeps its turn in this process while it waits in the store. @default all */
  readonly keptTurns?: readonly string[] | undefined;
  /** The request of the call that this one was changed from. */
  readonly original?: LockRequest | undefined;
}

/** One call for a lock: its keys, and its resolved options. */
export interface LockRequest extends ResolvedLockOptions, CallParts {
  onWait: CallParts['onWait'];
  /** What `waitSignals` has listed. */
  signals: readonly AbortSignal[] | undefined;
}

/** Makes a request. All requests are made here, and one way, so that they have one shape. */
export function lockRequest(options: ResolvedLockOptions, parts: CallParts, waitMs = options.waitMs): LockRequest {
  const request = copyOptions(options) as Writable<LockRequest>;
  // One by one: V8 takes five times as long to assign them from another object.
  request.waitMs = waitMs;
  request.keys = parts.keys;
  request.waitSignals = parts.waitSignals;
  request.onWait = parts.onWait;
  request.leavesAtOnce = parts.leavesAtOnce;
  request.keptTurns = parts.keptTurns;
  request.original = parts.original;
  request.signals = undefined;
  return request;
}

/**
 * Returns the signals that end the waits of a call. They are the same for each of its waits: a signal that has aborted
 * between two of them, such as that of a client that has gone, may not be listed a second time.
 */
export function signalsOf(request: LockRequest): readonly AbortSignal[] {
  const call = request.original ?? request;
  return (call.signals ??= call.waitSignals());
}

/** Finds a signal of the call that has aborted: its own, or one that ends its waits, once it has waited. */
export function abortedSignal(request: LockRequest): AbortSignal | undefined {
  const { signal, signals } = request.original ?? request;
  return signals ? signals.find(({ aborted }) => aborted) : signal?.aborted ? signal : undefined;
}

/** Copies a request with some parts changed. */
export function changedRequest(
  request: LockRequest,
  change: Partial<CallParts> & { readonly waitMs?: number },
): LockRequest {
  return lockRequest(
    request,
    {
      keys: change.keys ?? request.keys,
      waitSignals: change.waitSignals ?? request.waitSignals,
      onWait: change.onWait ?? request.onWait,
      leavesAtOnce: change.leavesAtOnce ?? request.leavesAtOnce,
      keptTurns: change.keptTurns ?? request.keptTurns,
      original: request.original ?? request,
    },
    change.waitMs,
  );
}

/** Why a request got no lock. Not an error, so that a failed `tryLock` is cheap. */
export type Refusal = Omit<TimeoutFacts, 'holding'>;

/** Who kept the caller from the lock. */
export interface Obstacle {
  /** `host:pid` of the holder, where it is known. */
  readonly holder: string | undefined;
  /** How many callers waited before it, as far as is known. */
  readonly ahead: number;
  /** How long the lease of the holder lasts if nobody renews it, in ms, where it is known. */
  readonly leaseLeftMs: number | undefined;
  /** The keys of the caller that complete a circle of calls that wait for each other. */
  readonly deadlock?: readonly string[] | undefined;
}

/** Who is in the way of a call that begins to wait. */
export interface WaitBegin extends Pick<Obstacle, 'holder' | 'ahead'> {
  /** The token of the holder, where it is known. */
  readonly token: string | undefined;
}

export function describeBusy({ holder, ahead, leaseLeftMs }: Busy): Obstacle {
  return { holder: holderOf(holder), ahead, leaseLeftMs };
}

export function refusal(reason: TimeoutReason, request: LockRequest, startedAt: number, obstacle: Obstacle): Refusal {
  const { keys, label, waitMs, maxWaiters } = request;
  return { keys, label, reason, waitedMs: now() - startedAt, waitMs, maxWaiters, ...obstacle };
}

/** Whether the lock of this request may be handed off inside its process: from another caller, and to another. */
export function allowsHandOff(request: LockRequest): boolean {
  const { keys, watchdog, waitMs, maxWaiters, atLeastMs } = request;
  return watchdog && usesLocalQueue(request) && keys.length === 1 && waitMs > 0 && maxWaiters > 0 && atLeastMs === 0;
}

/**
 * Whether the caller may start with only that much of its lease, in ms: the watchdog lengthens it. It does not lengthen
 * a fixed lease; and with `atLeast`, the key has to stay locked for the whole lease even if the release fails.
 */
export function canStartWith(lastsMs: number, { leaseMs, watchdog, maxHoldMs, atLeastMs }: LockRequest): boolean {
  return lastsMs >= leaseMs || (watchdog && maxHoldMs > lastsMs && atLeastMs === 0);
}

/**
 * Whether the caller waits for its turn in this process. With `fair`, all callers queue in the store; and so do those
 * that share the key.
 */
export function usesLocalQueue({ fair, sharing }: Pick<LockRequest, 'fair' | 'sharing'>): boolean {
  return !fair && sharing === 'exclusive';
}

/** The keys for which the caller has the turn in this process, once it has entered the local queue. */
export function turnsOf(request: LockRequest): readonly string[] {
  return usesLocalQueue(request) ? (request.keptTurns ?? request.keys) : NONE;
}

const NONE: readonly string[] = [];
