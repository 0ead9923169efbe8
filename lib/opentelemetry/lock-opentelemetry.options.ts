import type { MeterProvider, TracerProvider } from '@opentelemetry/api';

/** Options of `LockOpenTelemetryModule`. */
export interface LockOpenTelemetryOptions {
  /** Whether to measure locks. @default true */
  readonly metrics?: boolean;
  /** Whether to trace locks. @default true */
  readonly traces?: boolean;
  /** Where the metrics go. @default the global meter provider, as it is when the app starts */
  readonly meterProvider?: MeterProvider;
  /** Where the spans go. @default the global tracer provider */
  readonly tracerProvider?: TracerProvider;
  /**
   * How many different labels there are in the metrics. Each is a time series of its own, so all that come later count
   * as `'other'`, and a line in the log says so.
   * @default 200
   */
  readonly maxLabels?: number;
  /**
   * Which calls have a span `lock.acquire`: those that had to wait or failed, or all.
   * @default 'queued'
   */
  readonly acquireSpans?: 'queued' | 'all';
  /** Whether spans tell the keys of their locks, which can name a customer. @default false */
  readonly keys?: boolean;
}
