import { BalanceLimitError, InsufficientFundsError } from './accounts.errors.js';
import { MAX_MONEY } from './money.js';

export interface Account {
  readonly id: number;
  readonly owner: string;
  readonly balance: number;
}

/**
 * Returns the account with `change` added to its balance.
 *
 * @throws InsufficientFundsError, BalanceLimitError when the balance does not allow it
 */
export function withChange(account: Account, change: number): Account {
  const { id, balance } = account;
  if (balance + change < 0) throw new InsufficientFundsError(id, balance, -change);
  if (balance > MAX_MONEY - change) throw new BalanceLimitError(id);
  return { ...account, balance: balance + change };
}
