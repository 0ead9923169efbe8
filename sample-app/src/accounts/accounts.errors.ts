import { NotFoundError, NotPossibleError } from '../errors/domain-errors.js';
import { MAX_MONEY } from './money.js';

export class AccountNotFoundError extends NotFoundError {
  constructor(id: number) {
    super(`There is no account ${id}.`);
  }
}

export class InsufficientFundsError extends NotPossibleError {
  constructor(id: number, balance: number, amount: number) {
    super(`Insufficient funds: account ${id} has ${balance}, and ${amount} was asked for.`);
  }
}

export class BalanceLimitError extends NotPossibleError {
  constructor(id: number) {
    super(`Account ${id} cannot hold more than ${MAX_MONEY}.`);
  }
}
