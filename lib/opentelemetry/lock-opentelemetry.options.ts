import type { MeterProvider } from '@opentelemetry/api';

/** Options of `LockOpenTelemetryModule`. */
export interface LockOpenTelemetryOptions {
  /** Where the metrics go. @default the global meter provider, as it is when the app starts */
  readonly meterProvider?: MeterProvider;
  /**
   * How many different labels there are in the metrics. Each is a time series of its own, so all that come later count
   * as `'other'`, and a line in the log says so.
   * @default 200
   */
  readonly maxLabels?: number;
}
