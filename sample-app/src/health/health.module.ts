import { Module } from '@nestjs/common';
import { TerminusModule } from '@nestjs/terminus';
import { LockHealthIndicator } from 'nest-redis-lock/terminus';
import { DatabaseHealthIndicator } from './database-health.indicator.js';
import { HealthController } from './health.controller.js';

@Module({
  imports: [TerminusModule],
  controllers: [HealthController],
  providers: [LockHealthIndicator, DatabaseHealthIndicator],
})
export class HealthModule {}
