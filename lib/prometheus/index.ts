export { LockPrometheusModule } from './lock-prometheus.module.js';
export type { LockPrometheusOptions } from './lock-prometheus.options.js';
