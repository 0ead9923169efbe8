import { BadRequestException, Inject, Injectable } from '@nestjs/common';
import { WithLock } from 'nest-redis-lock';
import { APP_OPTIONS, type AppOptions } from '../app.options.js';
import { withChange, type Account } from './account.js';
import { AccountsRepository } from './accounts.repository.js';
import { FraudCheck } from './fraud-check.js';

@Injectable()
export class AccountsService {
  constructor(
    private readonly accounts: AccountsRepository,
    private readonly fraudCheck: FraudCheck,
    @Inject(APP_OPTIONS) private readonly options: AppOptions,
  ) {}

  @WithLock('account:<id>')
  deposit(id: number, amount: number): Promise<Account> {
    return this.changeBalance(id, amount);
  }

  @WithLock('account:<id>')
  withdraw(id: number, amount: number): Promise<Account> {
    return this.changeBalance(id, -amount);
  }

  /** Does what `withdraw` does, without the lock: two at a time read the same balance, and one of them is lost. */
  async withdrawUnsafe(id: number, amount: number): Promise<Account> {
    if (!this.options.demoUnsafe) {
      throw new BadRequestException(['unsafe=true loses money. To see it do so, start the app with DEMO_UNSAFE=1']);
    }
    const account = await this.accounts.get(id);
    const changed = withChange(account, -amount);
    await this.fraudCheck.approve(account, -amount);
    await this.accounts.saveUnsafe(changed);
    return changed;
  }

  // On purpose not one `UPDATE … SET balance = balance + change`: services read, ask others, decide and write back.
  // That is right only while nobody else does the same to this account, which is what the lock is for.
  private async changeBalance(id: number, change: number): Promise<Account> {
    const account = await this.accounts.getToChange(id);
    const changed = withChange(account, change);
    await this.fraudCheck.approve(account, change);
    await this.accounts.save(changed);
    return changed;
  }
}
