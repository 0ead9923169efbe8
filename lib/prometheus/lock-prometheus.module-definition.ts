import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { LockPrometheusOptions } from './lock-prometheus.options.js';

export const {
  ConfigurableModuleClass,
  MODULE_OPTIONS_TOKEN: PROMETHEUS_OPTIONS,
  OPTIONS_TYPE,
  ASYNC_OPTIONS_TYPE,
} = new ConfigurableModuleBuilder<LockPrometheusOptions>({ moduleName: 'LockPrometheus' })
  .setClassMethodName('forRoot')
  .build();
