import { ConfigurableModuleBuilder } from '@nestjs/common';
import { DEFAULT_MODULE, MODULE_OPTIONS_TOKEN } from '../service/lock.tokens.js';
import type { RedisLockModuleExtras, RedisLockOptions } from './redis-lock.options.js';

export const { ConfigurableModuleClass, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<RedisLockOptions>({
    moduleName: 'RedisLock',
    optionsInjectionToken: MODULE_OPTIONS_TOKEN,
  })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createRedisLockOptions')
    .setExtras<RedisLockModuleExtras>({ name: DEFAULT_MODULE, isGlobal: true }, (definition, { isGlobal = true }) => ({
      ...definition,
      global: isGlobal,
    }))
    .build();
