import {
  Catch,
  HttpStatus,
  NotFoundException,
  ServiceUnavailableException,
  UnprocessableEntityException,
  type ArgumentsHost,
  type HttpException,
} from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { AccountError, AccountNotFoundError, StaleFenceError } from './accounts.errors.js';

/** Maps the errors of accounts to HTTP: 404, 503 for a lost lock, and 422 for what the balance does not allow. */
@Catch(AccountError)
export class AccountErrorFilter extends BaseExceptionFilter<AccountError> {
  override catch(error: AccountError, host: ArgumentsHost): void {
    super.catch(toHttpException(error), host);
  }
}

function toHttpException(error: AccountError): HttpException {
  const { message } = error;
  if (error instanceof AccountNotFoundError) return new NotFoundException(message);
  if (!(error instanceof StaleFenceError)) return new UnprocessableEntityException(message);
  // The same body as when the lock library itself notices the loss.
  const statusCode = HttpStatus.SERVICE_UNAVAILABLE;
  return new ServiceUnavailableException({ statusCode, code: 'LOCK_LOST', message, error: 'Service Unavailable' });
}
