import { now } from '../../clock/deadline.js';
import type { LockEvent } from '../../core/lock/lock-event.js';

type EventOf<Type extends LockEvent['type']> = Extract<LockEvent, { readonly type: Type }>;

/** A call of this process that waits for a lock, or holds one. */
export interface LocalCall {
  readonly event: EventOf<'queued' | 'acquired'>;
  /** The id of the trace in which it holds the lock. */
  readonly traceId: string | undefined;
  /** Since when it waits, or holds the lock, by the monotonic clock. */
  readonly since: number;
  /** How long its lease was when it was granted or renewed, in ms; 0 while it waits. */
  leaseMs: number;
  /** When its lease ends if nobody renews it, by the monotonic clock. */
  leaseEndsAt: number;
  isOverdue: boolean;
}

/** Knows which calls of this process wait or hold a lock at the moment, in the order in which they began to. */
export class LocalCalls {
  readonly #waiting = new Map<number, LocalCall>();
  readonly #held = new Map<number, LocalCall>();

  /** Waiting calls, the longest first. */
  get waiting(): Iterable<LocalCall> {
    return this.#waiting.values();
  }

  /** Calls that hold a lock, the longest first. */
  get held(): Iterable<LocalCall> {
    return this.#held.values();
  }

  queued(event: EventOf<'queued'>): void {
    this.#waiting.set(event.id, localCall(event, 0));
  }

  stoppedWaiting(id: number): void {
    this.#waiting.delete(id);
  }

  acquired(event: EventOf<'acquired'>): void {
    // The lock of its parent call is there already.
    if (!event.nested) this.#held.set(event.id, localCall(event, event.remainingMs));
  }

  /** Returns the id of the trace in which a lock is held; undefined when it is not traced, or not known. */
  traceIdOf(id: number): string | undefined {
    return this.#held.get(id)?.traceId;
  }

  /** Returns how long the lease was that was renewed, in ms; undefined when the lock is not known. */
  renewed({ id, remainingMs }: EventOf<'renewed'>): number | undefined {
    const call = this.#held.get(id);
    if (!call) return undefined;
    const { leaseMs } = call;
    call.leaseMs = remainingMs;
    call.leaseEndsAt = now() + remainingMs;
    return leaseMs;
  }

  overdue(id: number): void {
    const call = this.#held.get(id);
    if (call) call.isOverdue = true;
  }

  ended(id: number): void {
    this.#held.delete(id);
  }
}

function localCall(event: LocalCall['event'], leaseMs: number): LocalCall {
  const traceId = event.type === 'acquired' ? traceIdIn(event.traceparent) : undefined;
  return { event, traceId, since: now(), leaseMs, leaseEndsAt: now() + leaseMs, isOverdue: false };
}

/** The id of the trace in a `traceparent` of W3C Trace Context: `version-trace-span-flags`. */
const traceIdIn = (traceparent: string | undefined): string | undefined => traceparent?.split('-')[1];
