import { Injectable } from '@nestjs/common';
import type { Selectable } from 'kysely';
import type { Lock } from 'nest-redis-lock';
import { Database } from '../database/database.js';
import { fenceOf } from '../database/fence.js';
import type { AccountsTable } from '../database/tables.js';
import { StaleFenceError } from '../errors/domain-errors.js';
import type { Account } from './account.js';
import { AccountNotFoundError } from './accounts.errors.js';

@Injectable()
export class AccountsRepository {
  constructor(private readonly database: Database) {}

  async create(owner: string, balance: number): Promise<Account> {
    const row = await this.database
      .insertInto('accounts')
      .values({ owner, balance })
      .returningAll()
      .executeTakeFirstOrThrow();
    return toAccount(row);
  }

  async get(id: number): Promise<Account> {
    const row = await this.database.selectFrom('accounts').selectAll().where('id', '=', id).executeTakeFirst();
    if (!row) throw new AccountNotFoundError(id);
    return toAccount(row);
  }

  /**
   * Reads an account under its lock, to change it. It stores the fence, so from now on no older holder can write the
   * account: otherwise one could do so between this read and the write that follows, which would then overwrite it.
   *
   * @throws LockLostError when the caller has lost the lock
   * @throws StaleFenceError when a newer holder of the lock has read the account already
   */
  async getToChange(id: number, lock: Lock): Promise<Account> {
    const fence = fenceOf(lock);
    const row = await this.database
      .updateTable('accounts')
      .set({ fence })
      .where('id', '=', id)
      .where('fence', '<=', fence)
      .returningAll()
      .executeTakeFirst();
    if (row) return toAccount(row);
    await this.get(id); // throws when there is no such account
    throw new StaleFenceError(`account ${id}`);
  }

  /**
   * Writes the balances of these accounts under their lock: all of them or none.
   *
   * @throws LockLostError when the caller has lost the lock
   * @throws StaleFenceError when a newer holder of the lock has read or written an account meanwhile
   */
  async save(accounts: readonly Account[], lock: Lock): Promise<void> {
    const fence = fenceOf(lock);
    await this.database.transaction().execute(async (transaction) => {
      for (const { id, balance } of accounts) {
        const { numUpdatedRows } = await transaction
          .updateTable('accounts')
          .set({ balance, fence })
          .where('id', '=', id)
          .where('fence', '<=', fence) // not `<`: the read under the same lock has stored it already
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) throw new StaleFenceError(`account ${id}`);
      }
    });
  }

  /** Writes a balance without a lock, over whatever others have written, to show what goes wrong then. */
  async saveUnsafe({ id, balance }: Account): Promise<void> {
    await this.database.updateTable('accounts').set({ balance }).where('id', '=', id).execute();
  }
}

// Postgres sends a bigint as text; a check on the column keeps it within what a number counts exactly.
function toAccount({ id, owner, balance }: Selectable<AccountsTable>): Account {
  return { id, owner, balance: Number(balance) };
}
