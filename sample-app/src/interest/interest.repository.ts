import { Injectable } from '@nestjs/common';
import type { Lock } from 'nest-redis-lock';
import { withChange } from '../accounts/account.js';
import { AccountsRepository } from '../accounts/accounts.repository.js';
import { Database } from '../database/database.js';
import { fenceOf } from '../database/fence.js';
import { StaleFenceError } from '../errors/domain-errors.js';
import { interestOn } from './interest.js';

/** Remembers how far a day's run has come, and pays. */
@Injectable()
export class InterestRepository {
  constructor(
    private readonly database: Database,
    private readonly accounts: AccountsRepository,
  ) {}

  /**
   * Begins the run of a day, or takes over the one that another process has begun. It stores the fence, so from now on
   * that process can't go on.
   *
   * @returns the id of the last account that has been paid; 0 for none
   * @throws LockLostError, StaleFenceError when the caller has lost the lock of the run
   */
  async begin(day: string, run: Lock): Promise<number> {
    const fence = fenceOf(run);
    await this.database
      .insertInto('interest_runs')
      .values({ day })
      .onConflict((conflict) => conflict.column('day').doNothing())
      .execute();
    const row = await this.database
      .updateTable('interest_runs')
      .set({ fence })
      .where('day', '=', day)
      .where('fence', '<=', fence)
      .returning('paid_up_to')
      .executeTakeFirst();
    if (!row) throw new StaleFenceError(`the interest of ${day}`);
    return row.paid_up_to;
  }

  /** Returns the id of the first account after this one. */
  async accountAfter(id: number): Promise<number | undefined> {
    const row = await this.database
      .selectFrom('accounts')
      .select('id')
      .where('id', '>', id)
      .orderBy('id')
      .limit(1)
      .executeTakeFirst();
    return row?.id;
  }

  /**
   * Pays one account, and writes down that the run has come so far: both or none. So whoever takes over pays nobody
   * twice, and leaves nobody out.
   *
   * @throws LockLostError, StaleFenceError when the caller has lost the lock of the account or of the run
   */
  async pay(day: string, id: number, { account, run }: { readonly account: Lock; readonly run: Lock }): Promise<void> {
    const before = await this.accounts.getToChange(id, account);
    const amount = interestOn(before.balance);
    const { balance } = withChange(before, amount);
    const fences = { account: fenceOf(account), run: fenceOf(run) };
    await this.database.transaction().execute(async (transaction) => {
      const progress = await transaction
        .updateTable('interest_runs')
        .set({ paid_up_to: id, fence: fences.run })
        .where('day', '=', day)
        .where('fence', '<=', fences.run)
        .executeTakeFirstOrThrow();
      if (progress.numUpdatedRows === 0n) throw new StaleFenceError(`the interest of ${day}`);
      const paid = await transaction
        .updateTable('accounts')
        .set({ balance, fence: fences.account })
        .where('id', '=', id)
        .where('fence', '<=', fences.account)
        .executeTakeFirstOrThrow();
      if (paid.numUpdatedRows === 0n) throw new StaleFenceError(`account ${id}`);
      await transaction.insertInto('interest_payments').values({ day, account_id: id, amount }).execute();
    });
  }

  /** Pays one account, whoever else does so at the same moment, to show what goes wrong then. */
  async payUnsafe(day: string, id: number): Promise<void> {
    const before = await this.accounts.get(id);
    const amount = interestOn(before.balance);
    await this.accounts.saveUnsafe(withChange(before, amount));
    await this.database.insertInto('interest_payments').values({ day, account_id: id, amount }).execute();
  }

  /** Returns how often an account was paid interest. */
  async countPayments(id: number): Promise<number> {
    const { count } = await this.database
      .selectFrom('interest_payments')
      .select(({ fn }) => fn.countAll().as('count'))
      .where('account_id', '=', id)
      .executeTakeFirstOrThrow();
    return Number(count);
  }
}
