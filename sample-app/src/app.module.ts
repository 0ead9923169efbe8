import { Module } from '@nestjs/common';
import { ConfigModule } from '@nestjs/config';
import { APP_FILTER } from '@nestjs/core';
import { RedisLockModule } from 'nest-redis-lock';
import { LockPageModule } from 'nest-redis-lock/page';
import { AccountsModule } from './accounts/accounts.module.js';
import { BankModule } from './bank/bank.module.js';
import { appConfig, type AppConfig } from './config/app.config.js';
import { DatabaseModule } from './database/database.module.js';
import { DemoPageModule } from './demo-page/demo-page.module.js';
import { DemoModule } from './demo/demo.module.js';
import { DomainErrorFilter } from './errors/domain-error.filter.js';
import { HealthModule } from './health/health.module.js';
import { ConnectionCloser } from './http/connection-closer.js';
import { InterestModule } from './interest/interest.module.js';
import { OperatorGuard } from './operators/operator.guard.js';
import { OrdersModule } from './orders/orders.module.js';
import { ReportsModule } from './reports/reports.module.js';
import { StockModule } from './stock/stock.module.js';
import { TransfersModule } from './transfers/transfers.module.js';

@Module({
  imports: [
    ConfigModule.forRoot({ isGlobal: true, load: [appConfig], ignoreEnvFile: true }),
    // Before the locks: Nest ends global modules in reverse, so the database is there until the last lock is released.
    DatabaseModule,
    RedisLockModule.forRootAsync({
      inject: [appConfig.KEY],
      useFactory: ({ redisUrl, lockWait, lockLease, shutdownGraceMs }: AppConfig) => ({
        connection: redisUrl,
        wait: lockWait,
        lease: lockLease,
        shutdownGrace: shutdownGraceMs,
      }),
    }),
    LockPageModule.forRoot({ guards: [OperatorGuard], actions: true }),
    DemoModule,
    AccountsModule,
    TransfersModule,
    StockModule,
    OrdersModule,
    InterestModule,
    ReportsModule,
    BankModule,
    DemoPageModule,
    HealthModule,
  ],
  providers: [ConnectionCloser, { provide: APP_FILTER, useClass: DomainErrorFilter }],
})
export class AppModule {}
