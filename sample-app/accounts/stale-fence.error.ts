import { HttpStatus, ServiceUnavailableException } from '@nestjs/common';

/** Says that a newer holder of the account's lock has been there, so this one has lost it. HTTP 503. */
export class StaleFenceError extends ServiceUnavailableException {
  constructor(accountId: number) {
    super({
      statusCode: HttpStatus.SERVICE_UNAVAILABLE,
      code: 'LOCK_LOST',
      message: `Somebody else changed account ${accountId} meanwhile. Nothing was changed; try again.`,
      error: 'Service Unavailable',
    });
  }
}
