import { Module } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { AccountErrorFilter } from './account-error.filter.js';
import { AccountsController } from './accounts.controller.js';
import { AccountsRepository } from './accounts.repository.js';
import { AccountsService } from './accounts.service.js';
import { FraudCheck } from './fraud-check.js';

@Module({
  controllers: [AccountsController],
  providers: [AccountsService, AccountsRepository, FraudCheck, { provide: APP_FILTER, useClass: AccountErrorFilter }],
  exports: [AccountsRepository, FraudCheck],
})
export class AccountsModule {}
