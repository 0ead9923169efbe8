import { Injectable } from '@nestjs/common';
import { CurrentLock, WithLock, type Lock } from 'nest-redis-lock';
import { withChange, type Account } from './account.js';
import { AccountsRepository } from './accounts.repository.js';
import { FraudCheck } from './fraud-check.js';

@Injectable()
export class AccountsService {
  constructor(
    private readonly accounts: AccountsRepository,
    private readonly fraudCheck: FraudCheck,
  ) {}

  create(owner: string, balance: number): Promise<Account> {
    return this.accounts.create(owner, balance);
  }

  get(id: number): Promise<Account> {
    return this.accounts.get(id);
  }

  @WithLock('account:<id>')
  deposit(id: number, amount: number, @CurrentLock() lock?: Lock): Promise<Account> {
    return this.changeBalance(id, amount, lock!);
  }

  @WithLock('account:<id>')
  withdraw(id: number, amount: number, @CurrentLock() lock?: Lock): Promise<Account> {
    return this.changeBalance(id, -amount, lock!);
  }

  /** Does what `withdraw` does, without the lock: two at a time read the same balance, and one of them is lost. */
  async withdrawUnsafe(id: number, amount: number): Promise<Account> {
    const account = await this.accounts.get(id);
    const changed = withChange(account, -amount);
    await this.fraudCheck.approve(account, -amount);
    await this.accounts.saveUnsafe(changed);
    return changed;
  }

  // On purpose not one `UPDATE … SET balance = balance + change`: services read, ask others, decide and write back.
  // That is right only while nobody else does the same to this account, which is what the lock is for.
  private async changeBalance(id: number, change: number, lock: Lock): Promise<Account> {
    const account = await this.accounts.getToChange(id, lock);
    const changed = withChange(account, change);
    await this.fraudCheck.approve(account, change);
    await this.accounts.save([changed], lock);
    return changed;
  }
}
