import { BadRequestException, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';

/** The largest id the database's integer column can give. */
export const MAX_ACCOUNT_ID = 2_147_483_647;

/**
 * Gives a handler the `:id` of its route, in the one spelling there is for each account.
 *
 * Not `@Param('id')` with a pipe: the global ValidationPipe comes first and has made a number of `1e2` and `%201` by then.
 */
export const AccountId = createParamDecorator((_: unknown, context: ExecutionContext): number => {
  const { id = '' } = context.switchToHttp().getRequest<Request<{ id?: string }>>().params;
  const isCanonical = /^[1-9]\d*$/.test(id);
  if (!isCanonical || Number(id) > MAX_ACCOUNT_ID) {
    throw new BadRequestException([`id must be a whole number from 1 to ${MAX_ACCOUNT_ID}`]);
  }
  return Number(id);
});
