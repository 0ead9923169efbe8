import { Injectable, NotFoundException } from '@nestjs/common';
import type { Selectable } from 'kysely';
import { lockKey, LockService } from 'nest-redis-lock';
import { Database, type AccountsTable } from '../database/database.js';
import type { Account } from './account.js';
import { StaleFenceError } from './stale-fence.error.js';

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

  /**
   * Reads an account under its lock, to change it. From now on no older holder can write to it: else one could do so
   * between this read and the write that follows, which would then undo it.
   *
   * @throws StaleFenceError when a newer holder of the lock has read it already
   */
  async getToChange(id: number): Promise<Account> {
    const fence = this.fenceOf(id);
    const row = await this.database
      .updateTable('accounts')
      .set({ fence })
      .where('id', '=', id)
      .where('fence', '<=', fence)
      .returningAll()
      .executeTakeFirst();
    if (row) return toAccount(row);
    await this.get(id); // throws when there is none
    throw new StaleFenceError(id);
  }

  /**
   * Writes the balances of these accounts under their lock: all of them or none.
   *
   * @throws StaleFenceError when a newer holder of the lock has been there meanwhile
   */
  async save(...accounts: Account[]): Promise<void> {
    const writes = accounts.map(({ id, balance }) => ({ id, balance, fence: this.fenceOf(id) }));

    await this.database.transaction().execute(async (transaction) => {
      for (const { id, balance, fence } of writes) {
        const { numUpdatedRows } = await transaction
          .updateTable('accounts')
          .set({ balance, fence })
          .where('id', '=', id)
          .where('fence', '<=', fence) // not `<`: the read of the same lock has noted it already
          .executeTakeFirstOrThrow();
        if (numUpdatedRows === 0n) throw new StaleFenceError(id);
      }
    });
  }

  /** Writes a balance without a lock, over whatever others have written: to show what goes wrong then. */
  async saveUnsafe({ id, balance }: Account): Promise<void> {
    await this.database.updateTable('accounts').set({ balance }).where('id', '=', id).execute();
  }

  /** The fence of the account's lock, as text, which is how a bigint travels. Throws when the caller does not hold it. */
  private fenceOf(id: number): string {
    // A lost lock is not current any more. Its holder must not write, least of all without a fence.
    const lock = this.locks.current(lockKey('account:<id>', { id }));
    if (!lock) throw new Error(`Account ${id} can be changed only under its lock, which was lost or never taken.`);
    return String(lock.fence);
  }
}

// Postgres sends a bigint as text; a check on the column keeps it within what a number counts exactly.
function toAccount({ id, owner, balance }: Selectable<AccountsTable>): Account {
  return { id, owner, balance: Number(balance) };
}
