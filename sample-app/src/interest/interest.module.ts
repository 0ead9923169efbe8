import { Module } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { AccountsModule } from '../accounts/accounts.module.js';
import { InterestController } from './interest.controller.js';
import { InterestRepository } from './interest.repository.js';
import { InterestService } from './interest.service.js';
import { NightlyInterest } from './nightly-interest.js';

@Module({
  imports: [ScheduleModule.forRoot(), AccountsModule],
  controllers: [InterestController],
  providers: [InterestService, InterestRepository, NightlyInterest],
})
export class InterestModule {}
