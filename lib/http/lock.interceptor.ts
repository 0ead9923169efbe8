import { type CallHandler, type ExecutionContext, Injectable, type NestInterceptor } from '@nestjs/common';
import { AsyncLocalStorage } from 'node:async_hooks';
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
    // In the context of the interceptors before this one, whoever reads the response.
    const inside = insideRequest(context, () => AsyncLocalStorage.snapshot());
    // What the handler returns may do its work when it is read.
    const readInside = map((result) => (isAsyncGenerator(result) ? generatorInside(inside, result) : result));
    return new Observable((subscriber) => inside(() => next.handle().pipe(readInside).subscribe(subscriber)));
  }
}

/** Looks at nothing of the value that a Proxy could answer. */
const isAsyncGenerator = (value: unknown): value is AsyncGenerator =>
  types.isGeneratorObject(value) && Symbol.asyncIterator in value;

/** The body of a generator runs where the generator is read. */
function generatorInside(
  inside: ReturnType<typeof AsyncLocalStorage.snapshot>,
  generator: AsyncGenerator,
): AsyncIterableIterator<unknown> {
  return {
    next: (...sent) => inside(() => generator.next(...sent)),
    return: (value) => inside(() => generator.return(value)),
    throw: (error) => inside(() => generator.throw(error)),
    [Symbol.asyncIterator]() {
      return this;
    },
  };
}
