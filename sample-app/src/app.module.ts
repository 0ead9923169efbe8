import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { RedisLockModule } from 'nest-redis-lock';
import { AccountsModule } from './accounts/accounts.module.js';
import { appConfig, type AppConfig } from './config/app.config.js';
import { DatabaseModule } from './database/database.module.js';
import { HealthModule } from './health/health.module.js';
import { ConnectionCloser } from './http/connection-closer.js';
import { TransfersModule } from './transfers/transfers.module.js';

@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true, load: [appConfig], ignoreEnvFile: true }),
    RedisLockModule.forRootAsync({
      inject: [appConfig.KEY],
      useFactory: ({ redisUrl, lockWait }: AppConfig) => ({
        connection: redisUrl,
        wait: lockWait,
        shutdownGrace: '5s',
      }),
    }),
    DatabaseModule,
    AccountsModule,
    TransfersModule,
    HealthModule,
  ],
  providers: [ConnectionCloser],
})
export class AppModule {}
