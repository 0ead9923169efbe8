export { LockOpenTelemetryModule } from './lock-opentelemetry.module.js';
export type { LockOpenTelemetryOptions } from './lock-opentelemetry.options.js';
