import { Injectable } from '@nestjs/common';
import { WithLock } from 'nest-redis-lock';
import type { Stock } from './stock.repository.js';
import { StockService } from './stock.service.js';

/** How many buyers of one piece the shop serves at a time. */
const SERVED_AT_ONCE = 20;

/**
 * Keeps a rush of buyers out of the shop. The waiting room lets in as many as can be served; who stays outside for two
 * seconds gets a 409 that says when to try again, instead of one connection of the database after another.
 */
@Injectable()
export class FlashSale {
  constructor(private readonly stock: StockService) {}

  @WithLock('waiting-room:<sku>', { permits: SERVED_AT_ONCE, wait: '2s' })
  buy(sku: string): Promise<Stock> {
    return this.stock.sell(sku);
  }
}
