import { Injectable } from '@nestjs/common';
import type { Insertable, Kysely, Selectable } from 'kysely';
import type { Lock } from 'nest-redis-lock';
import { Database } from '../database/database.js';
import type { OrdersTable, Tables } from '../database/tables.js';
import { StaleFenceError } from '../errors/domain-errors.js';
import { fingerprintOf, type Order, type OrderRequest } from './order.js';

@Injectable()
export class OrdersRepository {
  constructor(private readonly database: Database) {}

  /** Returns all orders with a serial: one, unless something went wrong. */
  async withSerial(serial: string): Promise<readonly Order[]> {
    const rows = await this.database
      .selectFrom('orders')
      .selectAll()
      .where('serial', '=', serial)
      .orderBy('id')
      .execute();
    return rows.map(toOrder);
  }

  /** Returns the order that a serial was used for, and the fingerprint of its request. */
  async recorded(serial: string): Promise<{ order: Order; fingerprint: string } | undefined> {
    const row = await this.database
      .selectFrom('order_records')
      .innerJoin('orders', 'orders.id', 'order_records.order_id')
      .selectAll('orders')
      .select('fingerprint')
      .where('order_records.serial', '=', serial)
      .executeTakeFirst();
    return row && { order: toOrder(row), fingerprint: row.fingerprint };
  }

  /**
   * Creates the order and its record: both or none.
   *
   * @throws LockLostError when the caller has lost the lock
   * @throws StaleFenceError when somebody else has created it meanwhile: the record has the serial as its primary key,
   *   so the database refuses a second one, whatever became of the lock
   */
  async create(request: OrderRequest, lock: Lock): Promise<Order> {
    const { serial } = request;
    lock.assertHeld();
    return this.database.transaction().execute(async (transaction) => {
      const order = await insert(transaction, request);
      const { numInsertedOrUpdatedRows } = await transaction
        .insertInto('order_records')
        .values({ serial, fingerprint: fingerprintOf(request), order_id: order.id })
        .onConflict((conflict) => conflict.column('serial').doNothing())
        .executeTakeFirstOrThrow();
      if (numInsertedOrUpdatedRows === 0n) throw new StaleFenceError(`order ${serial}`);
      return order;
    });
  }

  /** Creates the order without a record, to show what goes wrong then. */
  createUnsafe(request: OrderRequest): Promise<Order> {
    return insert(this.database, request);
  }
}

async function insert(database: Kysely<Tables>, { serial, item, amount }: OrderRequest): Promise<Order> {
  const values: Insertable<OrdersTable> = { serial, item, amount };
  return toOrder(await database.insertInto('orders').values(values).returningAll().executeTakeFirstOrThrow());
}

function toOrder({ id, serial, item, amount }: Selectable<OrdersTable>): Order {
  return { id, serial, item, amount: Number(amount) };
}
