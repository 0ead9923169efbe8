import type { LockEvent } from '../../core/lock/lock-event.js';

type EventOf<Type extends LockEvent['type']> = Extract<LockEvent, { readonly type: Type }>;

/** Remembers in which traces the locks of this process are held, because their later events do not tell. */
export class HeldTraces {
  readonly #ids = new Map<number, string>();

  acquired({ id, nested, traceparent }: EventOf<'acquired'>): void {
    const traceId = traceIdIn(traceparent);
    // The lock of its parent call is there already.
    if (!nested && traceId !== undefined) this.#ids.set(id, traceId);
  }

  /** Returns the id of the trace in which a lock is held; undefined when it is not traced, or not known. */
  of(id: number): string | undefined {
    return this.#ids.get(id);
  }

  ended(id: number): void {
    this.#ids.delete(id);
  }
}

/** The id of the trace in a `traceparent` of W3C Trace Context: `version-trace-span-flags`. */
const traceIdIn = (traceparent: string | undefined): string | undefined => traceparent?.split('-')[1];
