import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';
import { leaveAllLocks } from '../core/nesting/lock-context.js';
import { isLedAway } from './arrivals.js';
import { prepareGrpcCall } from './grpc-call.js';
import { enterRequest, rawResponse } from './http-request.js';
import { tellLateListeners } from './late-close.js';
import { followQueued } from './queued-response.js';

/**
 * Keeps each request out of locks that are not its own; and unless the module has `http: false`, does for every handler
 * what `LockInterceptor` does for one. It guards nothing: a guard is the cheapest place in Nest that sees each request
 * before its handler runs (1 to 4 µs; a global interceptor 9 to 60, docs/decisions/0003).
 */
export class LockRequestGuard implements CanActivate {
  /** Whether it does what `LockInterceptor` does. */
  follows = false;

  canActivate(context: ExecutionContext): boolean {
    prepareGrpcCall(context);
    const response = rawResponse(context);
    if (isLedAway(response)) leaveAllLocks();
    if (this.follows) enterRequest(context);
    else if (response) followQueued(response);
    tellLateListeners(context);
    return true;
  }
}

/** Whether the module does for every handler of an app what `LockInterceptor` does for one. */
export const followsRequests = (app: ApplicationConfig): boolean =>
  app.getGlobalGuards().some((guard) => guard instanceof LockRequestGuard && guard.follows);

/**
 * Registers the guard while Nest still builds the app: before the guards of the app itself, however these are
 * registered. It must be the first, because the request it sets would not get past an asynchronous guard before it.
 *
 * @param follows whether it does all that `LockInterceptor` does
 */
export function bindRequestGuard(app: ApplicationConfig, follows: boolean): void {
  let guard = app.getGlobalGuards().find((guard) => guard instanceof LockRequestGuard);
  if (!guard) app.addGlobalGuard((guard = new LockRequestGuard()));
  guard.follows ||= follows;
}
