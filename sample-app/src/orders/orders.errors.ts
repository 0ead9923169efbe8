import { NotFoundError, NotPossibleError } from '../errors/domain-errors.js';

export class OrderNotFoundError extends NotFoundError {
  constructor(serial: string) {
    super(`There is no order ${serial}.`);
  }
}

export class SerialUsedError extends NotPossibleError {
  constructor(serial: string) {
    super(`The serial ${serial} belongs to another order. Take a new one for each order.`);
  }
}
