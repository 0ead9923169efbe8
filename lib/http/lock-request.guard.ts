import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';
import { enterRequest } from './http-request.js';

/**
 * Does for every handler what `LockInterceptor` does for one. It guards nothing: a guard is the cheapest place in Nest
 * that sees each request before its handler runs (1 to 4 µs; a global interceptor 9 to 60, docs/decisions/0003).
 */
export class LockRequestGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    enterRequest(context);
    return true;
  }
}

/**
 * Registers the guard while Nest still builds the app: before the guards of the app itself, however these are
 * registered. It must be the first, because the request it sets would not get past an asynchronous guard before it.
 */
export function bindRequestGuard(app: ApplicationConfig): void {
  const isThere = app.getGlobalGuards().some((guard) => guard instanceof LockRequestGuard);
  if (!isThere) app.addGlobalGuard(new LockRequestGuard());
}
