import { MAX_MONEY } from './money.js';

/** Says why an account can't be read or changed. `AccountErrorFilter` maps it to HTTP. */
export abstract class AccountError extends Error {
  override readonly name = this.constructor.name;
}

export class AccountNotFoundError extends AccountError {
  constructor(id: number) {
    super(`There is no account ${id}.`);
  }
}

export class InsufficientFundsError extends AccountError {
  constructor(id: number, balance: number, amount: number) {
    super(`Insufficient funds: account ${id} has ${balance}, and ${amount} was asked for.`);
  }
}

export class BalanceLimitError extends AccountError {
  constructor(id: number) {
    super(`Account ${id} cannot hold more than ${MAX_MONEY}.`);
  }
}

/** A newer holder of the account's lock has read or written the account, so this caller has lost the lock. */
export class StaleFenceError extends AccountError {
  constructor(id: number) {
    super(`Somebody else changed account ${id} meanwhile. Nothing was changed; try again.`);
  }
}
