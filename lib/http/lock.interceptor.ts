import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import type { Observable } from 'rxjs';
import { insideRequest } from './http-request.js';

/**
 * Ties the locks of a handler to its HTTP request: a time-out becomes a 409 and an outage a 503 with `Retry-After`, the
 * log gets the detail that names the key, and a request whose client has gone stops waiting.
 *
 * The module does this for every handler already. Use the interceptor with `http: false`, to choose the handlers
 * yourself.
 */
@Injectable()
export class LockInterceptor implements NestInterceptor {
  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    return insideRequest(context, () => next.handle());
  }
}
