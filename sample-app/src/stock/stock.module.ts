import { Module } from '@nestjs/common';
import { FlashSale } from './flash-sale.js';
import { StockController } from './stock.controller.js';
import { StockRepository } from './stock.repository.js';
import { StockService } from './stock.service.js';
import { Warehouse } from './warehouse.js';

@Module({ controllers: [StockController], providers: [StockService, StockRepository, FlashSale, Warehouse] })
export class StockModule {}
