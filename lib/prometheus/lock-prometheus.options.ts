import type { Registry } from 'prom-client';

/** Options of `LockPrometheusModule`. */
export interface LockPrometheusOptions {
  /** Where the metrics are registered. @default the default registry of prom-client, `register` */
  readonly registry?: Registry | undefined;
  /**
   * How many different labels there are in the metrics. Each is a time series of its own, so all that come later count
   * as `'other'`, and a line in the log says so.
   * @default 200
   */
  readonly maxLabels?: number | undefined;
}
