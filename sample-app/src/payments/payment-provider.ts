import { Injectable } from '@nestjs/common';
import { setTimeout } from 'node:timers/promises';
import { Database } from '../database/database.js';

export interface Charge {
  readonly serial: string;
  readonly amount: number;
  /** Two charges with the same key are one. */
  readonly idempotencyKey: string;
}

/**
 * Simulates a payment provider that is called over the network. It has a table of its own, and knows nothing of the
 * transactions of the shop.
 */
@Injectable()
export class PaymentProvider {
  constructor(private readonly database: Database) {}

  async charge({ serial, amount, idempotencyKey }: Charge): Promise<void> {
    await setTimeout(20);
    await this.database
      .insertInto('charges')
      .values({ serial, amount, idempotency_key: idempotencyKey })
      .onConflict((conflict) => conflict.column('idempotency_key').doNothing())
      .execute();
  }

  /** Returns how often an order was charged. */
  async countCharges(serial: string): Promise<number> {
    const { count } = await this.database
      .selectFrom('charges')
      .select(({ fn }) => fn.countAll().as('count'))
      .where('serial', '=', serial)
      .executeTakeFirstOrThrow();
    return Number(count);
  }
}
