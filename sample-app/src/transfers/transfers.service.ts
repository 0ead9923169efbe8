import { Injectable } from '@nestjs/common';
import { CurrentLock, WithLock, type Lock } from 'nest-redis-lock';
import { withChange, type Account } from '../accounts/account.js';
import { AccountsRepository } from '../accounts/accounts.repository.js';
import { FraudCheck } from '../accounts/fraud-check.js';

@Injectable()
export class TransfersService {
  constructor(
    private readonly accounts: AccountsRepository,
    private readonly fraudCheck: FraudCheck,
  ) {}

  /**
   * Moves money. Both accounts are locked, in an order that two opposite transfers agree on, so they can't deadlock.
   */
  @WithLock(['account:<from>', 'account:<to>'])
  async transfer(
    from: number,
    to: number,
    amount: number,
    @CurrentLock() lock?: Lock,
  ): Promise<{ from: Account; to: Account }> {
    const payer = await this.accounts.getToChange(from, lock!);
    const payee = await this.accounts.getToChange(to, lock!);
    const changed = { from: withChange(payer, -amount), to: withChange(payee, amount) };
    await this.fraudCheck.approve(payer, -amount);
    await this.accounts.save([changed.from, changed.to], lock!);
    return changed;
  }
}
