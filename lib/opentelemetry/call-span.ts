import { context, ROOT_CONTEXT, type Context, type Span, type Tracer } from '@opentelemetry/api';
import { now } from '../clock/deadline.js';
import type { CallFailure } from '../core/lock/call-failure.js';
import type { HoldTrace } from '../core/lock/hold-trace.js';
import type { CallTrace, TracedCall } from '../core/lock/lock-tracer.js';
import type { Lock } from '../core/lock/lock.js';
import type { Refusal, WaitBegin } from '../core/request/lock-request.js';
import { failSpan } from './failed-span.js';
import { LockError } from '../errors/lock.error.js';
import { HoldSpan } from './hold-span.js';
import { quietly } from './quietly.js';
import { attributesOf, given, type SpanSettings } from './span-attributes.js';
import { spanContextOf, traceparentOf } from './traceparent.js';

/** What the spans of the calls of a service need. */
export interface CallSpanParts extends SpanSettings {
  readonly tracer: Tracer;
  /** Whether calls that got their lock at once have a span, too. */
  readonly all: boolean;
  /** Asks for the trace of the lock that belongs to a token. */
  readonly holderTrace: (token: string) => Promise<string | undefined>;
}

/**
 * The span `lock.acquire` of a call: from the call until its outcome. It begins only when there is something to tell,
 * so that an uncontended lock does without.
 */
export class CallSpan implements CallTrace {
  readonly #parts: CallSpanParts;
  readonly #call: TracedCall;
  /** The context of the caller. */
  readonly #parent: Context = context.active();
  /** What to add to a time of the monotonic clock for a time since 1970, in ms: the span keeps to one clock. */
  readonly #epochMs = Date.now() - now();
  #span: Span | undefined;
  #isQueued = false;
  #linking: Promise<void> | undefined;

  constructor(parts: CallSpanParts, call: TracedCall) {
    this.#parts = parts;
    this.#call = call;
  }

  queued({ token, holder }: WaitBegin): string | undefined {
    if (this.#isQueued) return undefined;
    this.#isQueued = true;
    return quietly(() => {
      const span = this.#start();
      span.setAttributes(given('nest_redis_lock.holder', holder));
      const traceparent = traceparentOf(span.spanContext());
      if (token !== undefined && traceparent !== undefined) this.#linking = this.#link(span, token);
      return traceparent;
    });
  }

  acquired(lock: Lock): HoldTrace | undefined {
    return quietly(() => {
      if (this.#span || this.#parts.all) this.#end(this.#start());
      if (lock.isNested) return undefined;
      const attributes = { ...attributesOf(this.#call.request, this.#parts), 'nest_redis_lock.fence': lock.fence };
      return new HoldSpan(this.#parts.tracer.startSpan('lock.hold', { attributes }, this.#parent));
    });
  }

  /** A call that only tried has no error when it finds the key busy: it asked just that. */
  refused({ reason, waitMs }: Refusal): void {
    quietly(() => {
      const span = this.#start();
      if (waitMs > 0) failSpan(span, 'busy');
      else span.setAttribute('error.type', 'busy');
      span.setAttribute('nest_redis_lock.timeout.reason', reason);
      this.#end(span);
    });
  }

  failed(error: unknown, failure: CallFailure): void {
    quietly(() => {
      const span = this.#start();
      failSpan(span, failure === 'mistake' && error instanceof LockError ? error.code : failure, error);
      this.#end(span);
    });
  }

  #start(): Span {
    if (this.#span) return this.#span;
    const { request, startedAt } = this.#call;
    const options = { attributes: attributesOf(request, this.#parts), startTime: this.#epochMs + startedAt };
    return (this.#span = this.#parts.tracer.startSpan('lock.acquire', options, this.#parent));
  }

  /** Ends the span as of now; later, if the link to the holder is still to come. */
  #end(span: Span): void {
    span.setAttribute('nest_redis_lock.queued', this.#isQueued);
    const endTime = this.#epochMs + now();
    if (this.#linking) void this.#linking.then(() => quietly(() => span.end(endTime)));
    else span.end(endTime);
  }

  /** Links the span to that of the holder. Never rejects. */
  async #link(span: Span, token: string): Promise<void> {
    const holder = await context.with(ROOT_CONTEXT, () => this.#parts.holderTrace(token));
    const attributes = { 'nest_redis_lock.link': 'holder' };
    if (holder !== undefined) quietly(() => span.addLink({ context: spanContextOf(holder), attributes }));
  }
}
