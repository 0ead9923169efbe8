import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, type ExecutionContext, HttpException, Logger } from '@nestjs/common';
import { isLockError, LockError, type LockErrorCode } from '../errors/lock.error.js';
import { callExceptionFactory, type LockExceptionFactory } from './exception-factory.js';
import { destroyOnceReset } from './reset-stream.js';
import { routeOf } from './handler-names.js';
import { isClosed, onceEnded } from './response-end.js';

/** Seconds a client is told to wait before it tries again, where nothing is known. */
const RETRY_AFTER_SECONDS = 1;

/** What Nest marks handlers of server-sent events with. */
const SSE = '__sse__';

/** Those that tell of a mistake in the code, not of load, an outage or a client. */
const MISTAKES: ReadonlySet<LockErrorCode> = new Set(['LOCK_OPTIONS_INVALID', 'LOCK_NOT_WIRED'] as const);

const logger = new Logger('RedisLock');
const requests = new AsyncLocalStorage<HttpRequest>();

/** The HTTP request that the running async context answers. */
class HttpRequest {
  readonly #response: ServerResponse;
  readonly #context: ExecutionContext;
  #error: LockError | undefined;
  #gone: AbortController | undefined;
  #guarded = false;

  constructor(response: ServerResponse, context: ExecutionContext) {
    this.#response = response;
    this.#context = context;
    destroyOnceReset(response);
  }

  /**
   * Aborts when the client goes away before it has its answer. Made when somebody first waits for a lock.
   *
   * It says so once: what goes on waiting after that, such as a worker that the request has started, is no business of the
   * client's any more.
   */
  get clientGone(): AbortSignal | undefined {
    const response = this.#response;
    if (response.writableEnded || this.#gone?.signal.aborted) return undefined;
    if (!this.#gone) {
      const gone = (this.#gone = new AbortController());
      const onEnd = () => {
        if (!response.writableEnded) gone.abort(clientGone());
      };
      if (isClosed(response)) onEnd();
      else onceEnded(response, onEnd);
    }
    return this.#gone.signal;
  }

  /** Remembers the error, and when it really becomes the answer, adds `Retry-After` and logs what the client isn't told. The factory makes the answer. */
  failedWith(error: LockError, factory: LockExceptionFactory | undefined): void {
    const response = this.#response;
    // One of another copy of the package knows no such answers, perhaps.
    if (factory && error instanceof LockError && !MISTAKES.has(error.code))
      error.answerWith(() => callExceptionFactory(factory, error, this.#context));
    const seenBefore = this.#error !== undefined;
    this.#error = error;
    if (response.headersSent && Reflect.hasMetadata(SSE, this.#context.getHandler())) this.#guardEvents();
    if (seenBefore || response.headersSent) return;

    const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
    response.writeHead = (status: number, ...rest: unknown[]) => {
      if (this.#error?.isAnswered && this.#error.getStatus() === status) this.#answeredWith(this.#error);
      this.#error = undefined;
      return writeHead(status, ...rest);
    };
  }

  /** Nest ends a stream of events that has begun with the message of its error: the client gets that of its body, the log the detail. */
  #guardEvents(): void {
    if (this.#guarded) return;
    this.#guarded = true;
    const response = this.#response;
    const write = response.write.bind(response) as (chunk: unknown, ...rest: unknown[]) => boolean;
    response.write = (chunk: unknown, ...rest: unknown[]) => write(this.#event(chunk), ...rest);
  }

  #event(chunk: unknown): unknown {
    const error = this.#error;
    if (!error || !(typeof chunk === 'string' || Buffer.isBuffer(chunk))) return chunk;
    const event = chunk.toString();
    if (!event.startsWith('event: error\n') || !event.includes(error.message)) return chunk;
    this.#log(error);
    return event.replace(error.message, () => error.body.message);
  }

  #log(error: LockError): void {
    if (error.isTold) return;
    const line = `${routeOf(this.#context)}: ${error.detail}`;
    // No stack where the place in the code says nothing new.
    if (MISTAKES.has(error.code)) logger.error(line, error.stack);
    else logger.warn(line);
  }

  #answeredWith(error: LockError): void {
    this.#log(error);
    // Clients repeat by themselves what has this header: not what may be half done.
    const { retryable, retryAfter = RETRY_AFTER_SECONDS } = error;
    if (retryable && !this.#response.hasHeader('Retry-After'))
      this.#response.setHeader('Retry-After', String(retryAfter));
  }
}

/** What a request fails with when nobody waits for its answer any more. Nobody gets to read it, but logs have the status. */
export const clientGone = (): HttpException =>
  new HttpException('The client went away before its request was handled.', 499);

/**
 * The response as Node knows it, on any platform. Undefined where there is none: Nest takes a handler that a library calls by its
 * `ExternalContextCreator` for one of HTTP, unless the library says what it is, and its arguments can be anything.
 */
export function rawResponse(context: ArgumentsHost): ServerResponse | undefined {
  if (context.getType() !== 'http') return undefined;
  try {
    const given = context.switchToHttp().getResponse<Partial<ServerResponse & { raw: ServerResponse }> | undefined>();
    const response = given?.raw ?? given;
    return typeof response?.writeHead === 'function' && typeof response.on === 'function'
      ? (response as ServerResponse)
      : undefined;
  } catch {
    return undefined;
  }
}

function httpRequest(context: ExecutionContext): HttpRequest | undefined {
  const response = rawResponse(context);
  return response && new HttpRequest(response, context);
}

/** Makes the request known to everything that this async context calls from here on. */
export function enterRequest(context: ExecutionContext): void {
  const request = httpRequest(context);
  if (request) requests.enterWith(request);
}

/** Makes the request known to what `work` calls. */
export function insideRequest<T>(context: ExecutionContext, work: () => T): T {
  const request = httpRequest(context);
  return request ? requests.run(request, work) : work();
}

/** Aborts when the HTTP client of this async context goes away; nothing outside of a request. */
export function clientGoneSignal(): AbortSignal | undefined {
  return requests.getStore()?.clientGone;
}

/**
 * Hands a lock error that is about to be thrown to the HTTP request it may become the answer of; returns what it got.
 *
 * @param factory of the module whose lock it is about
 */
export function attachToRequest<E>(error: E, factory?: LockExceptionFactory): E {
  if (isLockError(error)) requests.getStore()?.failedWith(error, factory);
  return error;
}
