import { Injectable } from '@nestjs/common';
import { CurrentLock, WithLock, type Lock } from 'nest-redis-lock';
import { SoldOutError } from './stock.errors.js';
import { StockRepository, type Stock } from './stock.repository.js';
import { Warehouse } from './warehouse.js';

@Injectable()
export class StockService {
  constructor(
    private readonly stock: StockRepository,
    private readonly warehouse: Warehouse,
  ) {}

  get(sku: string): Promise<Stock> {
    return this.stock.get(sku);
  }

  @WithLock('sku:<sku>')
  async set(sku: string, pieces: number, @CurrentLock() lock?: Lock): Promise<Stock> {
    await this.stock.set(sku, pieces, lock!);
    return this.stock.get(sku);
  }

  /** Sells one piece. Reads, asks the warehouse and writes: right only while nobody else does so for this piece. */
  @WithLock('sku:<sku>')
  async sell(sku: string, @CurrentLock() lock?: Lock): Promise<Stock> {
    const pieces = await this.stock.getToChange(sku, lock!);
    if (pieces === 0) throw new SoldOutError(sku);
    await this.warehouse.reserve(sku);
    await this.stock.sell(sku, pieces - 1, lock!);
    return this.stock.get(sku);
  }

  /** Does the same without the lock: two buyers read the same number, and both get the last piece. */
  async sellUnsafe(sku: string): Promise<Stock> {
    const { pieces } = await this.stock.get(sku);
    if (pieces === 0) throw new SoldOutError(sku);
    await this.warehouse.reserve(sku);
    await this.stock.sellUnsafe(sku, pieces - 1);
    return this.stock.get(sku);
  }
}
