import {
  BadGatewayException,
  Catch,
  HttpStatus,
  NotFoundException,
  ServiceUnavailableException,
  UnprocessableEntityException,
  type ArgumentsHost,
  type HttpException,
} from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { DomainError, NotFoundError, StaleFenceError, UpstreamError } from './domain-errors.js';

/**
 * Maps the errors of the services to HTTP: 404, 422 for what the data does not allow, 502 for another system, and 503
 * for a lost lock.
 */
@Catch(DomainError)
export class DomainErrorFilter extends BaseExceptionFilter<DomainError> {
  override catch(error: DomainError, host: ArgumentsHost): void {
    super.catch(toHttpException(error), host);
  }
}

function toHttpException(error: DomainError): HttpException {
  const { message } = error;
  if (error instanceof NotFoundError) return new NotFoundException(message);
  if (error instanceof UpstreamError) return new BadGatewayException(message);
  if (!(error instanceof StaleFenceError)) return new UnprocessableEntityException(message);
  // The same body as when the lock library itself notices the loss.
  return new ServiceUnavailableException({
    statusCode: HttpStatus.SERVICE_UNAVAILABLE,
    code: 'LOCK_LOST',
    message,
    error: 'Service Unavailable',
    retryable: false,
  });
}
