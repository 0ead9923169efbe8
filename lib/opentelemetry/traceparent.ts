import { isSpanContextValid, TraceFlags, type SpanContext } from '@opentelemetry/api';

/** Writes the context of a recorded span as W3C Trace Context does. Undefined when the span is not recorded. */
export function traceparentOf(context: SpanContext): string | undefined {
  const { traceId, spanId, traceFlags } = context;
  if (!isSpanContextValid(context) || !(traceFlags & TraceFlags.SAMPLED)) return undefined;
  return `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;
}

/** Reads a trace context that has been checked. */
export function spanContextOf(traceparent: string): SpanContext {
  const [, traceId, spanId, flags] = traceparent.split('-') as [string, string, string, string];
  return { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true };
}
