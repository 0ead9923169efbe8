import { metrics, trace } from '@opentelemetry/api';
import { booleanOption, oneOf } from '../core/request/lock-options.js';
import { checkedOptions, checkedPart } from '../metrics/checked-options.js';
import { MOST_LABELS } from '../metrics/lock-meter.js';
import type { LockOpenTelemetryOptions } from './lock-opentelemetry.options.js';

const KNOWN = [
  ...(['metrics', 'traces', 'meterProvider', 'tracerProvider'] as const),
  ...(['maxLabels', 'acquireSpans', 'keys'] as const),
];

/**
 * Checks the options, and fills in the defaults.
 *
 * @throws LockOptionsError
 */
export function resolveOptions(given: LockOpenTelemetryOptions): Required<LockOpenTelemetryOptions> {
  const options = checkedOptions(given, KNOWN);
  const { meterProvider = metrics.getMeterProvider(), tracerProvider = trace.getTracerProvider() } = options;
  checkedPart('meterProvider', meterProvider, 'getMeter', 'a MeterProvider');
  checkedPart('tracerProvider', tracerProvider, 'getTracer', 'a TracerProvider');
  return {
    metrics: booleanOption('metrics', options.metrics ?? true),
    traces: booleanOption('traces', options.traces ?? true),
    meterProvider,
    tracerProvider,
    maxLabels: options.maxLabels ?? MOST_LABELS,
    acquireSpans: oneOf('acquireSpans', options.acquireSpans ?? 'queued', ['queued', 'all']),
    keys: booleanOption('keys', options.keys ?? false),
  };
}
