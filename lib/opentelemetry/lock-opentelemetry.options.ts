import type { MeterProvider, TracerProvider } from '@opentelemetry/api';

/** Options of `LockOpenTelemetryModule`. */
export interface LockOpenTelemetryOptions {
  /** Whether to measure locks. @default true */
  readonly metrics?: boolean | undefined;
  /** Whether to trace locks. @default true */
  readonly traces?: boolean | undefined;
  /** Where the metrics go. @default the global meter provider, as it is when the app starts */
  readonly meterProvider?: MeterProvider | undefined;
  /** Where the spans go. @default the global tracer provider */
  readonly tracerProvider?: TracerProvider | undefined;
  /**
   * How many different labels there are in the metrics. Each is a time series of its own, so all that come later count
   * as `'other'`, and a line in the log says so.
   * @default 200
   */
  readonly maxLabels?: number | undefined;
  /**
   * Which calls have a span `lock.acquire`: those that had to wait or failed, or all.
   * @default 'queued'
   */
  readonly acquireSpans?: 'queued' | 'all' | undefined;
  /** Whether spans tell the keys of their locks, which can name a customer. @default false */
  readonly keys?: boolean | undefined;
}
