import { UpstreamError } from '../errors/domain-errors.js';

export class BankError extends UpstreamError {
  constructor(why: string, options?: ErrorOptions) {
    super(`The bank did not take the payout: ${why}.`, options);
  }
}
