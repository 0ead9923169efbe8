import { Injectable, NotFoundException } from '@nestjs/common';
import type { Selectable } from 'kysely';
import { LockService } from 'nest-redis-lock';
import { Database, type AccountsTable } from '../database/database.js';
import type { Account } from './account.js';

@Injectable()
export class AccountsRepository {
  constructor(
    private readonly database: Database,
    private readonly locks: LockService,
  ) {}

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
    if (!row) throw new NotFoundException(`There is no account ${id}.`);
    return toAccount(row);
  }

  /** Writes the balances of these accounts: all of them or none. */
  async save(...accounts: Account[]): Promise<void> {
    // A process that was paused for longer than its lease has lost its lock: what it is about to write is out of date.
    this.locks.current()?.assertHeld();

    await this.database.transaction().execute(async (transaction) => {
      for (const { id, balance } of accounts) {
        await transaction.updateTable('accounts').set({ balance }).where('id', '=', id).execute();
      }
    });
  }
}

// Postgres sends a bigint as text; a check on the column keeps it within what a number counts exactly.
function toAccount(row: Selectable<AccountsTable>): Account {
  return { ...row, balance: Number(row.balance) };
}
