import type { CanActivate, ExecutionContext } from '@nestjs/common';
import type { ApplicationConfig } from '@nestjs/core';
import { isLedAway } from './arrivals.js';
import { enterRequest, rawResponse } from './http-request.js';
import { tellLateListeners } from './late-close.js';
import { keepQueuedInContext } from './queued-response.js';

/**
 * Does for every handler what `LockInterceptor` does for one. It guards nothing: a guard is the cheapest place in Nest
 * that sees each request before its handler runs (1 to 4 µs; a global interceptor 9 to 60, docs/decisions/0003).
 */
export class LockRequestGuard implements CanActivate {
  readonly #leaveLocks: () => void;

  /** @param leaveLocks takes the running async context, and all that it calls, out of all locks */
  constructor(leaveLocks: () => void) {
    this.#leaveLocks = leaveLocks;
  }

  canActivate(context: ExecutionContext): boolean {
    if (isLedAway(rawResponse(context))) this.#leaveLocks();
    enterRequest(context);
    tellLateListeners(context);
    return true;
  }
}

/** Keeps requests out of locks that are not theirs. All that is left of the other guard with `http: false`. */
export class OwnContextGuard implements CanActivate {
  readonly #leaveLocks: () => void;

  constructor(leaveLocks: () => void) {
    this.#leaveLocks = leaveLocks;
  }

  canActivate(context: ExecutionContext): boolean {
    const response = rawResponse(context);
    if (isLedAway(response)) this.#leaveLocks();
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
export function bindRequestGuard(app: ApplicationConfig, follows: boolean, leaveLocks: () => void): void {
  const guards = app.getGlobalGuards();
  if (guards.some((guard) => guard instanceof LockRequestGuard)) return;
  if (follows) app.addGlobalGuard(new LockRequestGuard(leaveLocks));
  else if (!guards.some((guard) => guard instanceof OwnContextGuard))
    app.addGlobalGuard(new OwnContextGuard(leaveLocks));
}
