import { Module } from '@nestjs/common';
import { AccountsModule } from '../accounts/accounts.module.js';
import { TransfersController } from './transfers.controller.js';
import { TransfersService } from './transfers.service.js';

@Module({ imports: [AccountsModule], controllers: [TransfersController], providers: [TransfersService] })
export class TransfersModule {}
