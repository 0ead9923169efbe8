import { Injectable } from '@nestjs/common';
import { setTimeout } from 'node:timers/promises';
import { Database } from '../database/database.js';

export interface Charge {
  readonly serial: string;
  readonly amount: number;
  /** Two charges with the same key are one, and have the same amount. */
  readonly idempotencyKey: string;
}

/** The key was used for another amount. */
export class KeyUsedError extends Error {
  override readonly name = 'KeyUsedError';
}

/**
 * Simulates a payment provider that is called over the network. It has a table of its own, and knows nothing of the
 * transactions of the shop.
 */
@Injectable()
export class PaymentProvider {
  constructor(private readonly database: Database) {}

  /** @throws KeyUsedError */
  async charge({ serial, amount, idempotencyKey }: Charge): Promise<void> {
    await setTimeout(20);
    await this.database
      .insertInto('charges')
      .values({ serial, amount, idempotency_key: idempotencyKey })
      .onConflict((conflict) => conflict.column('idempotency_key').doNothing())
      .execute();
    const known = await this.database
      .selectFrom('charges')
      .select('amount')
      .where('idempotency_key', '=', idempotencyKey)
      .executeTakeFirstOrThrow();
    if (Number(known.amount) !== amount) throw new KeyUsedError(`The key ${idempotencyKey} has another amount.`);
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
