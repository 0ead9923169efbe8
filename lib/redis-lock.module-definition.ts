import { ConfigurableModuleBuilder } from '@nestjs/common';
import type { RedisLockModuleExtras, RedisLockOptions } from './redis-lock.options.js';

export const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN, OPTIONS_TYPE, ASYNC_OPTIONS_TYPE } =
  new ConfigurableModuleBuilder<RedisLockOptions>({ moduleName: 'RedisLock' })
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createRedisLockOptions')
    .setExtras<RedisLockModuleExtras>({ name: 'default', isGlobal: true }, (definition, { isGlobal }) => ({
      ...definition,
      global: isGlobal,
    }))
    .build();
