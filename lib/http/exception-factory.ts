import { type ExecutionContext, HttpException } from '@nestjs/common';
import type { LockError } from '../errors/lock.error.js';
import { shown } from '../errors/messages.js';
import { logger } from '../log/logger.js';
import { routeOf } from './handler-names.js';

/**
 * Returns the exception to send to an HTTP client instead of a lock error; `undefined` keeps the default response. It
 * must return neither a promise nor anything else. Inside it, `error.getStatus()` and `error.getResponse()` return the
 * default response.
 */
export type LockExceptionFactory = (error: LockError, context: ExecutionContext) => HttpException | undefined;

/**
 * Calls the factory of a module. Returns undefined where the factory returns nothing, or nothing that can be a
 * response, which is logged.
 */
export function callExceptionFactory(
  factory: LockExceptionFactory,
  error: LockError,
  context: ExecutionContext,
): HttpException | undefined {
  let made: unknown;
  try {
    made = factory(error, context);
    if (made === undefined || made === error) return undefined;
    if (made instanceof HttpException && isStatus(made.getStatus())) return made;
  } catch (thrown) {
    logMistake(context, `"exceptionFactory" threw ${thrown instanceof Error ? thrown.message : shown(thrown)}`, thrown);
    return undefined;
  }
  // A promise is refused; without this, its rejection would be unhandled.
  if (made instanceof Promise) made.catch(() => undefined);
  logMistake(
    context,
    made instanceof HttpException
      ? `The exception of "exceptionFactory" has the status ${shown(made.getStatus())}`
      : `"exceptionFactory" returned ${shown(made)}`,
  );
  return undefined;
}

const isStatus = (status: unknown): boolean =>
  Number.isInteger(status) && (status as number) >= 200 && (status as number) < 600;

function logMistake(context: ExecutionContext, what: string, thrown?: unknown): void {
  const rule = 'but must return an HttpException with a status of 200 to 599, or undefined';
  const line = `${routeOf(context)}: ${what}, ${rule}. The client gets the default response.`;
  logger.error(line, ...(thrown instanceof Error ? [thrown.stack] : []));
}
