import { context, trace, type Span } from '@opentelemetry/api';
import type { HoldTrace } from '../core/lock/hold-trace.js';
import type { LockLostError } from '../errors/lock-lost.error.js';
import { failSpan } from './failed-span.js';
import { quietly } from './quietly.js';
import { traceparentOf } from './traceparent.js';

/** The span `lock.hold`: from the grant until the lock is released or lost. The work's own spans are its children. */
export class HoldSpan implements HoldTrace {
  readonly traceparent: string | undefined;
  readonly #span: Span;
  #hasEnded = false;

  constructor(span: Span) {
    this.#span = span;
    this.traceparent = traceparentOf(span.spanContext());
  }

  run<T>(work: () => T): T {
    return context.with(trace.setSpan(context.active(), this.#span), work);
  }

  end(loss: LockLostError | undefined): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    quietly(() => {
      if (loss) failSpan(this.#span, loss.reason, loss);
      this.#span.end();
    });
  }
}
