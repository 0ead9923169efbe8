import { INTERCEPTORS_METADATA } from '@nestjs/common/constants.js';
import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { insideRequest, rawResponse } from '../../http/http-request.js';
import { interceptorsOf } from './lock-routes.js';
import { currentTry, tryOf } from './request-try.js';

/**
 * Runs the pipes and the handler in the try of their own request, wherever the interceptors before it have gone on.
 * Nest runs the handler in the async context in which an interceptor calls it.
 */
const innermost: NestInterceptor = {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const response = rawResponse(context);
    const begun = response && tryOf(response);
    if (!begun || begun === currentTry()) return next.handle();
    return insideRequest(context, () => begun.goOn(() => next.handle()));
  },
};

/** Binds it after all other interceptors of a handler: once its decorators have run, before Nest makes the route. */
export function bindInnermost(handler: object): void {
  const bound = interceptorsOf(handler);
  if (!bound.includes(innermost)) Reflect.defineMetadata(INTERCEPTORS_METADATA, [...bound, innermost], handler);
}
