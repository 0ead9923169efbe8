import { BadRequestException, createParamDecorator, type ExecutionContext } from '@nestjs/common';
import type { Request } from 'express';

/** The largest id of the database's integer column. */
export const MAX_ACCOUNT_ID = 2_147_483_647;

/**
 * Reads the `:id` of the route, in the only spelling that each account has.
 *
 * Not `@Param('id')` with a pipe: the global ValidationPipe runs first and turns `1e2` and `%201` into numbers.
 */
export const AccountId = createParamDecorator((_: unknown, context: ExecutionContext): number => {
  const { id = '' } = context.switchToHttp().getRequest<Request<{ id?: string }>>().params;
  const isCanonical = /^[1-9]\d*$/.test(id);
  if (!isCanonical || Number(id) > MAX_ACCOUNT_ID) {
    throw new BadRequestException([`id must be a whole number from 1 to ${MAX_ACCOUNT_ID}`]);
  }
  return Number(id);
});
