import { NotFoundError, NotPossibleError } from '../errors/domain-errors.js';

export class NoSuchPieceError extends NotFoundError {
  constructor(sku: string) {
    super(`There is no stock of ${sku}.`);
  }
}

export class SoldOutError extends NotPossibleError {
  constructor(sku: string) {
    super(`${sku} is sold out.`);
  }
}
