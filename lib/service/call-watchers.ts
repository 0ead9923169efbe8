import { withCallEvents } from '../core/lock/call-events.js';
import { withCallTrace } from '../core/lock/call-trace.js';
import { LockEvents } from '../core/lock/lock-events.js';
import type { LockTracer } from '../core/lock/lock-tracer.js';
import type { Lock } from '../core/lock/lock.js';
import type { LockRequest, Refusal } from '../core/request/lock-request.js';

type Acquire = (request: LockRequest) => Promise<Lock | Refusal>;

/** Those who watch the calls of a service: the subscribers to its events, and a tracer. */
export class CallWatchers {
  readonly events = new LockEvents();
  readonly #heldKeys: () => readonly string[];
  #tracer: LockTracer | undefined;

  /** @param heldKeys lists the keys that the running async context holds */
  constructor(heldKeys: () => readonly string[]) {
    this.#heldKeys = heldKeys;
  }

  /** Has calls and their locks traced from now on, unless they are already. */
  traceWith(tracer: LockTracer): void {
    this.#tracer ??= tracer;
  }

  /** Whether anybody watches. */
  get isWatching(): boolean {
    return this.#tracer !== undefined || this.events.hasSubscribers;
  }

  /** Lets them watch a call. */
  watch(request: LockRequest, acquire: Acquire): Promise<Lock | Refusal> {
    const tracer = this.#tracer;
    const traced: Acquire = tracer ? (request) => withCallTrace(tracer, request, acquire) : acquire;
    const { events } = this;
    return events.hasSubscribers
      ? withCallEvents({ events, heldKeys: this.#heldKeys }, request, traced)
      : traced(request);
  }
}
