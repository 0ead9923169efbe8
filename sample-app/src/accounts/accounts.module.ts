import { Module } from '@nestjs/common';
import { AccountsController } from './accounts.controller.js';
import { AccountsRepository } from './accounts.repository.js';
import { AccountsService } from './accounts.service.js';
import { FraudCheck } from './fraud-check.js';

@Module({
  controllers: [AccountsController],
  providers: [AccountsService, AccountsRepository, FraudCheck],
  exports: [AccountsService, AccountsRepository, FraudCheck],
})
export class AccountsModule {}
