import { Injectable } from '@nestjs/common';
import type { Lock } from 'nest-redis-lock';
import { Database } from '../database/database.js';
import { fenceOf } from '../database/fence.js';
import { StaleFenceError } from '../errors/domain-errors.js';
import { NoSuchPieceError } from './stock.errors.js';

export interface Stock {
  readonly sku: string;
  readonly pieces: number;
  readonly sold: number;
}

@Injectable()
export class StockRepository {
  constructor(private readonly database: Database) {}

  async get(sku: string): Promise<Stock> {
    const row = await this.database
      .selectFrom('stock')
      .select((stock) => [
        'sku',
        'pieces',
        stock
          .selectFrom('sales')
          .whereRef('sales.sku', '=', 'stock.sku')
          .select(({ fn }) => fn.countAll().as('count'))
          .as('sold'),
      ])
      .where('sku', '=', sku)
      .executeTakeFirst();
    if (!row) throw new NoSuchPieceError(sku);
    return { ...row, sold: Number(row.sold) };
  }

  /**
   * Sets the number of pieces under the lock of the stock.
   *
   * @throws LockLostError, StaleFenceError when the caller has lost the lock
   */
  async set(sku: string, pieces: number, lock: Lock): Promise<void> {
    const fence = fenceOf(lock);
    const { numInsertedOrUpdatedRows } = await this.database
      .insertInto('stock')
      .values({ sku, pieces, fence })
      .onConflict((conflict) => conflict.column('sku').doUpdateSet({ pieces, fence }).where('stock.fence', '<=', fence))
      .executeTakeFirstOrThrow();
    if (numInsertedOrUpdatedRows === 0n) throw new StaleFenceError(`the stock of ${sku}`);
  }

  /**
   * Reads how many pieces are left, to change it. It stores the fence, so from now on no older holder can write.
   *
   * @throws LockLostError, StaleFenceError when the caller has lost the lock
   */
  async getToChange(sku: string, lock: Lock): Promise<number> {
    const fence = fenceOf(lock);
    const row = await this.database
      .updateTable('stock')
      .set({ fence })
      .where('sku', '=', sku)
      .where('fence', '<=', fence)
      .returning('pieces')
      .executeTakeFirst();
    if (row) return row.pieces;
    await this.get(sku); // throws when there is no such stock
    throw new StaleFenceError(`the stock of ${sku}`);
  }

  /**
   * Writes down a sale, and how many pieces are left then.
   *
   * @throws LockLostError, StaleFenceError when the caller has lost the lock
   */
  async sell(sku: string, left: number, lock: Lock): Promise<void> {
    const fence = fenceOf(lock);
    await this.database.transaction().execute(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('stock')
        .set({ pieces: left, fence })
        .where('sku', '=', sku)
        .where('fence', '<=', fence)
        .executeTakeFirstOrThrow();
      if (numUpdatedRows === 0n) throw new StaleFenceError(`the stock of ${sku}`);
      await transaction.insertInto('sales').values({ sku }).execute();
    });
  }

  /** Does the same without a lock, over whatever others have written, to show what goes wrong then. */
  async sellUnsafe(sku: string, left: number): Promise<void> {
    await this.database.transaction().execute(async (transaction) => {
      await transaction.updateTable('stock').set({ pieces: left }).where('sku', '=', sku).execute();
      await transaction.insertInto('sales').values({ sku }).execute();
    });
  }
}
