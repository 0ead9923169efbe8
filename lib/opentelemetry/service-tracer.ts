import type { TracerProvider } from '@opentelemetry/api';
import { holderTrace } from '../core/holder-traces.js';
import type { CallTrace, LockTracer, TracedCall } from '../core/lock/lock-tracer.js';
import type { LockService } from '../service/lock.service.js';
import { DEFAULT_MODULE } from '../service/lock.tokens.js';
import { CallSpan, type CallSpanParts } from './call-span.js';
import { SCOPE } from './scope.js';

interface TracerSettings {
  readonly tracerProvider: TracerProvider;
  readonly acquireSpans: 'queued' | 'all';
  readonly keys: boolean;
}

/** Makes the spans of a service. */
export class ServiceTracer implements LockTracer {
  readonly #parts: CallSpanParts;

  constructor(locks: LockService, { tracerProvider, acquireSpans, keys }: TracerSettings) {
    const { moduleName, processes } = locks;
    this.#parts = {
      tracer: tracerProvider.getTracer(SCOPE),
      module: moduleName === DEFAULT_MODULE ? undefined : moduleName,
      keys,
      all: acquireSpans === 'all',
      holderTrace: (token) => holderTrace(processes, token),
    };
  }

  startCall(call: TracedCall): CallTrace {
    return new CallSpan(this.#parts, call);
  }
}
