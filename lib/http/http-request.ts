import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, type ExecutionContext, HttpException } from '@nestjs/common';
import { isLockError, LockError, type LockErrorCode } from '../errors/lock.error.js';
import { logger } from '../log/logger.js';
import { callExceptionFactory, type LockExceptionFactory } from './exception-factory.js';
import { routeOf, sendsEvents } from './handler-names.js';
import { keepQueuedInContext } from './queued-response.js';
import { destroyOnceReset } from './reset-stream.js';
import { isClosed, isOver, onceEnded } from './response-end.js';

/** The `Retry-After` of an error that has none of its own, in seconds. */
const RETRY_AFTER_SECONDS = 1;

/** The errors that show a mistake in the code, not load, an outage or a client's mistake. */
const MISTAKES: ReadonlySet<LockErrorCode> = new Set(['LOCK_OPTIONS_INVALID', 'LOCK_NOT_WIRED'] as const);

const requests = new AsyncLocalStorage<HttpRequest>();

/** What has failed in the requests of a response: each try of a handler that an interceptor calls again is one. */
const failed = new WeakMap<ServerResponse, Set<HttpRequest>>();

/** How Nest calls the handler of each response. */
const contexts = new WeakMap<ServerResponse, ExecutionContext>();

/**
 * The HTTP request that the running async context handles. What a request starts, such as a timer, keeps it for as long
 * as that lives, so it keeps neither the response nor its body.
 */
class HttpRequest {
  readonly #response: WeakRef<ServerResponse>;
  #error: LockError | undefined;
  #gone: AbortController | undefined;
  #guardsEvents = false;

  constructor(response: ServerResponse, context: ExecutionContext) {
    this.#response = new WeakRef(response);
    contexts.set(response, context);
    destroyOnceReset(response);
  }

  /** Keeps the response in the running async context, whoever ends the one ahead of it on its connection. */
  keepInContext(): void {
    const response = this.#response.deref();
    if (response) keepQueuedInContext(response);
  }

  get isOver(): boolean {
    const response = this.#response.deref();
    return !response || isOver(response);
  }

  watch(): void {
    const response = this.#response.deref();
    if (response && !isOver(response)) onceEnded(response, () => undefined);
  }

  /**
   * Aborts when the client goes away before it has its response. Created when somebody first waits for a lock.
   *
   * It aborts once: what goes on waiting after that, such as a worker that the request has started, no longer concerns
   * the client.
   */
  get clientGone(): AbortSignal | undefined {
    const response = this.#response.deref();
    if (!response || response.writableEnded || this.#gone?.signal.aborted) return undefined;
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

  /**
   * Remembers the error. If the error becomes the response, adds `Retry-After` and logs what the client doesn't get to
   * read. The factory makes the exception to send instead.
   */
  failedWith(error: LockError, factory: LockExceptionFactory | undefined): void {
    const response = this.#response.deref();
    // Node 20 may run what comes before the guard of the next request on a connection in the context of the last one.
    if (!response || isOver(response)) return;
    const context = contexts.get(response)!;
    // An error of another copy of the package may not have `replaceWith`.
    if (factory && error instanceof LockError && !MISTAKES.has(error.code))
      error.replaceWith(() => callExceptionFactory(factory, error, context));
    const seenBefore = this.#error !== undefined;
    this.#error = error;
    if (response.headersSent && sendsEvents(context)) this.#guardEvents(response);
    if (seenBefore || response.headersSent) return;
    const known = failed.get(response);
    if (known) known.add(this);
    else watchHead(response, new Set([this]));
  }

  /** Adds to the head of the response, which is about to be written, if the error becomes that. */
  headWith(status: number, response: ServerResponse): void {
    if (this.#error?.isUsedAsResponse && this.#error.getStatus() === status) respondWith(this.#error, response);
    this.#error = undefined;
  }

  /**
   * Replaces the message in the last event. Nest ends a stream of events with the error's message; the client gets the
   * message of its body, the log the detail.
   */
  #guardEvents(response: ServerResponse): void {
    if (this.#guardsEvents) return;
    this.#guardsEvents = true;
    const write = response.write.bind(response) as (chunk: unknown, ...rest: unknown[]) => boolean;
    response.write = (chunk: unknown, ...rest: unknown[]) => write(this.#event(chunk, response), ...rest);
  }

  #event(chunk: unknown, response: ServerResponse): unknown {
    const error = this.#error;
    if (!error || !(typeof chunk === 'string' || Buffer.isBuffer(chunk))) return chunk;
    const event = chunk.toString();
    if (!event.startsWith('event: error\n') || !event.includes(error.message)) return chunk;
    logFor(response, error);
    return event.replace(error.message, () => error.body.message);
  }
}

/** Logs what the client doesn't get to read. */
function logFor(response: ServerResponse, error: LockError): void {
  if (error.isReported) return;
  const line = `${routeOf(contexts.get(response)!)}: ${error.detail}`;
  // A stack only where the place in the code says something new.
  if (MISTAKES.has(error.code)) logger.error(line, error.stack);
  else logger.warn(line);
}

function respondWith(error: LockError, response: ServerResponse): void {
  logFor(response, error);
  // Clients resend by themselves when they see this header, so a request that may be half done must not have it.
  const { retryable, retryAfter = RETRY_AFTER_SECONDS } = error;
  if (retryable && !response.hasHeader('Retry-After')) response.setHeader('Retry-After', String(retryAfter));
  if (isOnClosedServer(response)) response.setHeader('Connection', 'close');
}

/** Wraps `writeHead` once for all tries: thousands of wrappers would overflow the stack. */
function watchHead(response: ServerResponse, requests: Set<HttpRequest>): void {
  failed.set(response, requests);
  const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
  response.writeHead = (status: number, ...rest: unknown[]) => {
    // The last one first: its `Retry-After` counts.
    for (const request of [...requests].reverse()) request.headWith(status, response);
    requests.clear();
    return writeHead(status, ...rest);
  };
}

/**
 * Tells whether the server takes no new connections any more. A client that goes on sending on an HTTP/1 connection
 * would keep it from closing, and never get to another node.
 */
function isOnClosedServer(response: ServerResponse): boolean {
  const request = response.req as Http1Request | undefined;
  return request?.httpVersionMajor === 1 && request.socket?.server?.listening === false;
}

interface Http1Request {
  readonly httpVersionMajor: number;
  readonly socket?: { readonly server?: { readonly listening?: boolean } };
}

/**
 * Makes the exception of a request that nobody waits for any more. Nobody reads the response, but logs have the status.
 */
export const clientGone = (): HttpException =>
  new HttpException('The client went away before its request was handled.', 499);

/**
 * Returns the response as Node knows it, on any platform; undefined where there is none. Nest takes a handler that a
 * library calls by its `ExternalContextCreator` for one of HTTP, unless the library says what it is, and its arguments
 * can be anything.
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
  if (!request) return;
  requests.enterWith(request);
  request.keepInContext();
}

/** Makes the request known to what `work` calls. */
export function insideRequest<T>(context: ExecutionContext, work: () => T): T {
  const request = httpRequest(context);
  if (!request) return work();
  return requests.run(request, () => {
    request.keepInContext();
    return work();
  });
}

/**
 * Returns a signal that aborts when the HTTP client of this async context goes away; undefined outside of a request.
 */
export function clientGoneSignal(): AbortSignal | undefined {
  return requests.getStore()?.clientGone;
}

/**
 * Looks from time to time whether the HTTP client of this async context has gone, until the response has been sent. The
 * connection is closed then, so whoever reads a stream for it hears of that, such as Nest.
 */
export function watchClient(): void {
  requests.getStore()?.watch();
}

/** Tells whether this async context handles an HTTP request that waits for its response. */
export function isRequestRunning(): boolean {
  return requests.getStore()?.isOver === false;
}

/** Tells whether the HTTP request of this async context has its response, or its client has gone. */
export function isRequestOver(): boolean {
  return requests.getStore()?.isOver ?? false;
}

/**
 * Attaches a lock error that is about to be thrown to the HTTP request whose response it may become. Returns the error.
 *
 * @param factory of the module whose lock it is about
 */
export function attachToRequest<E>(error: E, factory?: LockExceptionFactory): E {
  if (isLockError(error)) requests.getStore()?.failedWith(error, factory);
  return error;
}
