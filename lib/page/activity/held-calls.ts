import type { LockEvent } from '../../core/lock/lock-event.js';

type EventOf<Type extends LockEvent['type']> = Extract<LockEvent, { readonly type: Type }>;

/** What later events of a lock do not tell. */
interface HeldCall {
  /** The id of the trace in which it is held. */
  readonly traceId: string | undefined;
  /** How long its lease was when it was granted or renewed, in ms. */
  leaseMs: number;
}

/** Remembers of the locks of this process, while they are held, what their later events do not tell. */
export class HeldCalls {
  readonly #held = new Map<number, HeldCall>();

  acquired({ id, nested, traceparent, remainingMs }: EventOf<'acquired'>): void {
    // The lock of its parent call is there already.
    if (!nested) this.#held.set(id, { traceId: traceIdIn(traceparent), leaseMs: remainingMs });
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
    return leaseMs;
  }

  ended(id: number): void {
    this.#held.delete(id);
  }
}

/** The id of the trace in a `traceparent` of W3C Trace Context: `version-trace-span-flags`. */
const traceIdIn = (traceparent: string | undefined): string | undefined => traceparent?.split('-')[1];
