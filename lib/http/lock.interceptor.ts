import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { Observable } from 'rxjs';
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
    // What the handler returns may do its work when it is read.
    return new Observable((subscriber) => insideRequest(context, () => next.handle().subscribe(subscriber)));
  }
}
