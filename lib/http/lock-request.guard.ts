import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';
import { leaveForeignLocks } from './arrivals.js';
import { enterRequest, rawResponse } from './http-request.js';
import { tellLateListeners } from './late-close.js';
import { keepQueuedInContext } from './queued-response.js';

/**
 * Does for every handler what `LockInterceptor` does for one. It guards nothing: a guard is the cheapest place in Nest
 * that sees each request before its handler runs (1 to 4 µs; a global interceptor 9 to 60, docs/decisions/0003).
 */
export class LockRequestGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    leaveForeignLocks(rawResponse(context));
    enterRequest(context);
    tellLateListeners(context);
    return true;
  }
}

/**
 * Keeps pipelined requests out of the locks of those ahead of them on their connections. All that is left of the other
 * guard with `http: false`.
 */
export class QueuedRequestGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const response = rawResponse(context);
    if (response) keepQueuedInContext(response);
    tellLateListeners(context);
    return true;
  }
}

/**
 * Registers the guard while Nest still builds the app: before the guards of the app itself, however these are
 * registered. It must be the first, because the request it sets would not get past an asynchronous guard before it.
 *
 * @param follows whether it does all that `LockInterceptor` does
 */
export function bindRequestGuard(app: ApplicationConfig, follows: boolean): void {
  const guards = app.getGlobalGuards();
  if (guards.some((guard) => guard instanceof LockRequestGuard)) return;
  if (follows) app.addGlobalGuard(new LockRequestGuard());
  else if (!guards.some((guard) => guard instanceof QueuedRequestGuard)) app.addGlobalGuard(new QueuedRequestGuard());
}
