import { Module, type DynamicModule } from '@nestjs/common';
import { RedisLockModule } from 'nest-redis-lock';
import { AccountsModule } from './accounts/accounts.module.js';
import { APP_OPTIONS, type AppOptions } from './app.options.js';
import { DatabaseModule } from './database/database.module.js';
import { HealthModule } from './health/health.module.js';
import { TransfersModule } from './transfers/transfers.module.js';

@Module({})
export class AppModule {
  static register(options: AppOptions): DynamicModule {
    return {
      module: AppModule,
      global: true,
      imports: [
        RedisLockModule.forRoot({ connection: options.redisUrl, wait: options.wait, shutdownGrace: '5s' }),
        DatabaseModule,
        AccountsModule,
        TransfersModule,
        HealthModule,
      ],
      providers: [{ provide: APP_OPTIONS, useValue: options }],
      exports: [APP_OPTIONS],
    };
  }
}
