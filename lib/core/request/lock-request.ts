import { now } from '../../clock/deadline.js';
import type { TimeoutFacts, TimeoutReason } from '../../errors/lock-timeout.error.js';
import type { Busy } from '../../store/lock-store.js';
import type { ResolvedLockOptions } from './lock-options.js';
import { holderOf } from './lock-token.js';

/** What a call has besides its terms. */
interface CallParts {
  readonly keys: readonly string[];
  /** Signals that end the wait; asked for only when the call has to wait. */
  readonly waitSignals: () => readonly AbortSignal[];
  /** Called when the call queues, where somebody wants to know. */
  readonly onWait?: (() => void) | undefined;
  /** Whether it only waits for its turn in this process, and leaves as soon as it has it. */
  readonly leavesAtOnce?: boolean | undefined;
  /** For which of its keys it keeps its turn in this process while it waits in the store. @default all */
  readonly keptTurns?: readonly string[] | undefined;
}

/** One call for a lock, with nothing left open. */
export interface LockRequest extends ResolvedLockOptions, CallParts {}

/**
 * Makes a request. All requests are made here, property by property, so that they have one shape: V8 needs microseconds to spread
 * an object of this size.
 */
export function lockRequest(terms: ResolvedLockOptions, parts: CallParts, waitMs = terms.waitMs): LockRequest {
  const { keys, waitSignals, onWait, leavesAtOnce, keptTurns } = parts;
  return {
    keys,
    waitMs,
    leaseMs: terms.leaseMs,
    watchdog: terms.watchdog,
    maxHoldMs: terms.maxHoldMs,
    atLeastMs: terms.atLeastMs,
    mode: terms.mode,
    permits: terms.permits,
    sharing: terms.sharing,
    label: terms.label,
    maxWaiters: terms.maxWaiters,
    fair: terms.fair,
    reentrant: terms.reentrant,
    onLost: terms.onLost,
    signal: terms.signal,
    waitSignals,
    onWait,
    leavesAtOnce,
    keptTurns,
  };
}

/** Makes the request anew with some of it changed. */
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
    },
    change.waitMs,
  );
}

/** Why a request got no lock. No error object yet: a failed `tryLock` is cheap. */
export type Refusal = Omit<TimeoutFacts, 'holding'>;

/** Who stood in the way. */
interface InTheWay {
  /** `host:pid` of the holder, where it is known. */
  readonly holder: string | undefined;
  /** How many waited before the caller, as far as it knows. */
  readonly ahead: number;
  /** How long the lease of the holder lasts if nobody renews it, in ms, where it is known. */
  readonly leaseLeftMs: number | undefined;
  /** Keys of the caller that those wait for whom it waited for. */
  readonly deadlock?: readonly string[] | undefined;
}

export function heldBy({ holder, ahead, leaseLeftMs }: Busy): InTheWay {
  return { holder: holderOf(holder), ahead, leaseLeftMs };
}

export function refusal(reason: TimeoutReason, request: LockRequest, startedAt: number, inTheWay: InTheWay): Refusal {
  const { keys, label, waitMs, maxWaiters } = request;
  return { keys, label, reason, waitedMs: now() - startedAt, waitMs, maxWaiters, ...inTheWay };
}

/** Whether the lock of such a request may come from, and go to, another caller of its process without a word to the store. */
export function allowsHandOff(request: LockRequest): boolean {
  const { keys, watchdog, waitMs, maxWaiters, atLeastMs } = request;
  return watchdog && usesLocalQueue(request) && keys.length === 1 && waitMs > 0 && maxWaiters > 0 && atLeastMs === 0;
}

/**
 * Whether the caller may begin with so little of its lease, in ms: the watchdog will lengthen it. Nobody does so for a fixed lease;
 * and what is to be kept after a release must outlast one that fails.
 */
export function canStartWith(lastsMs: number, { leaseMs, watchdog, maxHoldMs, atLeastMs }: LockRequest): boolean {
  return lastsMs >= leaseMs || (watchdog && maxHoldMs > lastsMs && atLeastMs === 0);
}

/**
 * Whether the caller goes through the gate of this process: those who want it fair all queue in the store, and so do those
 * who share it.
 */
export function usesLocalQueue({ fair, sharing }: Pick<LockRequest, 'fair' | 'sharing'>): boolean {
  return !fair && sharing === 'exclusive';
}

/** For which keys the caller has its turn in this process, once it is through the gate. */
export function turnsOf(request: LockRequest): readonly string[] {
  return usesLocalQueue(request) ? (request.keptTurns ?? request.keys) : NONE;
}

const NONE: readonly string[] = [];
