import { Module } from '@nestjs/common';
import { PaymentProvider } from '../payments/payment-provider.js';
import { OrdersController } from './orders.controller.js';
import { OrdersRepository } from './orders.repository.js';
import { OrdersService } from './orders.service.js';

@Module({ controllers: [OrdersController], providers: [OrdersService, OrdersRepository, PaymentProvider] })
export class OrdersModule {}
