import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { LockOpenTelemetryOptions } from './lock-opentelemetry.options.js';

export const {
  ConfigurableModuleClass,
  MODULE_OPTIONS_TOKEN: OPENTELEMETRY_OPTIONS,
  OPTIONS_TYPE,
  ASYNC_OPTIONS_TYPE,
} = new ConfigurableModuleBuilder<LockOpenTelemetryOptions>({ moduleName: 'LockOpenTelemetry' })
  .setClassMethodName('forRoot')
  .build();
