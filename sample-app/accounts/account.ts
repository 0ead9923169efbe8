import { UnprocessableEntityException } from '@nestjs/common';
import { MAX_MONEY } from './money.js';

export interface Account {
  readonly id: number;
  readonly owner: string;
  readonly balance: number;
}

/** Returns the account with `change` added to its balance, or throws a 422 that says why it can't be. */
export function withChange(account: Account, change: number): Account {
  if (account.balance + change < 0) {
    throw new UnprocessableEntityException(
      `Insufficient funds: account ${account.id} has ${account.balance}, and ${-change} was asked for.`,
    );
  }
  if (account.balance > MAX_MONEY - change) {
    throw new UnprocessableEntityException(`Account ${account.id} cannot hold more than ${MAX_MONEY}.`);
  }
  return { ...account, balance: account.balance + change };
}
