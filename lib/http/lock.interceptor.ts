import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { types } from 'node:util';
import { map, Observable } from 'rxjs';
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
    // Nest calls the handler in the context of handle(), and reads what that returns in the context of the reader.
    return insideRequest(context, () => {
      const response = next
        .handle()
        .pipe(map((result: unknown) => (isAsyncGenerator(result) ? readInside(context, result) : result)));
      return new Observable((subscriber) => insideRequest(context, () => response.subscribe(subscriber)));
    });
  }
}

/** Looks at nothing of the value that a Proxy could answer. */
const isAsyncGenerator = (value: unknown): value is AsyncGenerator =>
  types.isGeneratorObject(value) && Symbol.asyncIterator in value;

/** Lets the body of a generator run inside the request, whoever reads it. Nest knows it by its object, so that stays. */
function readInside(context: ExecutionContext, generator: AsyncGenerator): AsyncGenerator {
  for (const name of ['next', 'return', 'throw'] as const) {
    const method = generator[name].bind(generator) as (...args: unknown[]) => unknown;
    const value = (...args: unknown[]): unknown => insideRequest(context, () => method(...args));
    // One that is frozen is read where its reader is.
    Reflect.defineProperty(generator, name, { configurable: true, writable: true, value });
  }
  return generator;
}
