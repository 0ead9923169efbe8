import { AsyncLocalStorage } from 'node:async_hooks';
import { getEventListeners } from 'node:events';
import type { ServerResponse } from 'node:http';
import { type ArgumentsHost, type ExecutionContext, HttpException } from '@nestjs/common';
import { type LockNode, locksAround } from '../core/nesting/lock-context.js';
import { isLockError, LockError } from '../errors/lock.error.js';
import { callExceptionFactory, type LockExceptionFactory } from './exception-factory.js';
import { canTell, type Failure, logFailure, MISTAKES, noteFailure, noteSent } from './failed-response.js';
import { followQueued } from './queued-response.js';
import { followStream } from './reset-stream.js';
import { RequestWork } from './request-work.js';
import { isClosed, isEndedByApp, isOver, onceEnded } from './response-end.js';

const requests = new AsyncLocalStorage<HttpRequest | undefined>();

/** How Nest calls the handler of each response. */
const contexts = new WeakMap<ServerResponse, ExecutionContext>();

/** The responses of requests that were entered before all interceptors. */
const entered = new WeakSet<ServerResponse>();

/** The locks around a whole request, such as those of its middleware: they were entered before it was. */
const locksAroundRequests = new WeakMap<ServerResponse, WeakSet<LockNode> | undefined>();

/** The locked work of each request. */
const works = new WeakMap<ServerResponse, RequestWork>();

/** Aborts when the client of a response goes away: one for all tries of a handler that an interceptor calls again. */
const gones = new WeakMap<ServerResponse, AbortController>();

/** Those of which a wait has heard. */
const heard = new WeakSet<AbortSignal>();

/** The factory of the module that each error comes from. */
const factories = new WeakMap<LockError, LockExceptionFactory>();

/**
 * The HTTP request that the running async context handles. What a request starts, such as a timer, keeps it for as long
 * as that lives, so it keeps neither the response nor its body.
 */
class HttpRequest {
  readonly #response: WeakRef<ServerResponse>;
  readonly #locksAround: WeakSet<LockNode> | undefined;
  #gone: AbortSignal | undefined;
  /** Whether a wait that began after the client had gone was told so. */
  #isTold = false;

  constructor(response: ServerResponse, context: ExecutionContext) {
    this.#response = new WeakRef(response);
    contexts.set(response, context);
    if (!locksAroundRequests.has(response)) locksAroundRequests.set(response, locksAround());
    this.#locksAround = locksAroundRequests.get(response);
    followStream(response);
  }

  /** Follows the response, if it waits behind another one on its connection. */
  followQueued(): void {
    const response = this.#response.deref();
    if (response) followQueued(response);
  }

  isOf(response: ServerResponse): boolean {
    return this.#response.deref() === response;
  }

  isInside(node: LockNode): boolean {
    return this.#locksAround?.has(node) ?? false;
  }

  get isOver(): boolean {
    const response = this.#response.deref();
    return !response || isOver(response);
  }

  noteWork(): ((begins: boolean) => void) | undefined {
    const response = this.#response.deref();
    return response && workOf(response).ask();
  }

  watch(whenOver: () => void): () => void {
    const response = this.#response.deref();
    return response && !isOver(response) ? onceEnded(response, whenOver) : nothing;
  }

  /**
   * Aborts when the client goes away before it has its response. Created when somebody first waits for a lock.
   *
   * It ends waits once: what goes on waiting after that, such as a worker that the request has started, no longer
   * concerns the client.
   *
   * @param isInside whether the wait goes on in spite of it
   */
  clientGone(isInside: boolean): AbortSignal | undefined {
    const response = this.#response.deref();
    if (!response || isEndedByApp(response)) return undefined;
    const gone = (this.#gone ??= goneSignal(response));
    if (!gone.aborted || isInside) return gone;
    if (this.#isTold || heard.has(gone)) return undefined;
    this.#isTold = true;
    return gone;
  }

  /**
   * Remembers the error. If the error becomes the response, adds `Retry-After` and logs what the client doesn't get to
   * read. The factory makes the exception to send instead.
   */
  failedWith(error: LockError, factory: LockExceptionFactory | undefined): void {
    const response = this.#response.deref();
    // Node 20 may run what comes before the guard of the next request on a connection in the context of the last one.
    if (!response || isOver(response)) return;
    attach(response, { by: this, error, context: contexts.get(response)!, work: workOf(response) }, factory);
  }
}

function workOf(response: ServerResponse): RequestWork {
  const work = works.get(response) ?? new RequestWork();
  works.set(response, work);
  return work;
}

function attach(response: ServerResponse, failure: Failure, factory: LockExceptionFactory | undefined): void {
  const { error, context, work } = failure;
  // An error of another copy of the package may not have these methods.
  if (error instanceof LockError) {
    const endsEvents = response.headersSent && canTell(response, failure);
    if (!endsEvents) work.judge(error);
    if (factory && context && !response.headersSent && !MISTAKES.has(error.code))
      error.replaceWith(() => callExceptionFactory(factory, error, context));
  }
  noteFailure(response, failure);
}

function nothing(): void {}

function goneSignal(response: ServerResponse): AbortSignal {
  const gone = gones.get(response) ?? new AbortController();
  const tell = (): void => {
    if (isEndedByApp(response)) return;
    if (getEventListeners(gone.signal, 'abort').length > 0) heard.add(gone.signal);
    gone.abort(clientGone());
  };
  if (isClosed(response)) tell();
  else if (!gones.has(response)) onceEnded(response, tell);
  gones.set(response, gone);
  return gone.signal;
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
  entered.add(rawResponse(context)!);
  requests.enterWith(request);
  request.followQueued();
}

/** Forgets the request of this async context: Node 20 begins the next one on a connection in that of the last. */
export function leaveRequest(): void {
  if (requests.getStore()) requests.enterWith(undefined);
}

/** Makes the request known to what `work` calls. */
export function insideRequest<T>(context: ExecutionContext, work: () => T): T {
  const request = httpRequest(context);
  if (!request) return work();
  return requests.run(request, () => {
    request.followQueued();
    return work();
  });
}

/**
 * Tells whether the running async context is that of something else than the request with this response: such as of a
 * job that was the first to use a client whose callback goes on with the request.
 */
export function isElsewhere(response: ServerResponse): boolean {
  return entered.has(response) && !requests.getStore()?.isOf(response);
}

/**
 * Returns a signal that aborts when the HTTP client of this async context goes away; undefined outside of a request.
 */
export function clientGoneSignal(isInside = false): AbortSignal | undefined {
  return requests.getStore()?.clientGone(isInside);
}

/** Whether a lock is around the whole HTTP request of this async context, such as that of a middleware. */
export function isAroundRequest(node: LockNode): boolean {
  return requests.getStore()?.isInside(node) ?? false;
}

/**
 * Looks from time to time whether the HTTP client of this async context has gone, until the response has been sent. The
 * connection is closed then, so whoever reads a stream for it hears of that, such as Nest.
 *
 * @param whenOver is called when the response has been sent, or the client has gone
 * @returns a function that keeps it from being called
 */
export function watchClient(whenOver: () => void): () => void {
  return requests.getStore()?.watch(whenOver) ?? nothing;
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
 * Notes that work is asked for in the HTTP request of this async context that another try of the request would repeat.
 *
 * @returns a function that tells whether that begins, or was refused; undefined outside of a request
 */
export function noteRequestWork(): ((begins: boolean) => void) | undefined {
  return requests.getStore()?.noteWork();
}

/**
 * Attaches a lock error that is about to be thrown to the HTTP request whose response it may become. Returns the error.
 *
 * @param factory of the module whose lock it is about
 */
export function attachToRequest<E>(error: E, factory?: LockExceptionFactory): E {
  if (!isLockError(error)) return error;
  if (factory) factories.set(error, factory);
  requests.getStore()?.failedWith(error, factory);
  return error;
}

/**
 * Attaches an error that becomes a response to its request, unless that is done: it may come from the async context of
 * no request, or of another one, such as a callback of a client that has connected in it. Logs one of which the response
 * can't tell any more: a handler may respond first and then work.
 *
 * @param followsRequests whether every request has a context when it reaches its handler
 */
export function attachToResponse(error: LockError, host: ArgumentsHost, followsRequests: boolean): void {
  const response = rawResponse(host);
  if (!response || noteSent(response, error)) return;
  const context = contexts.get(response);
  if (!context && !followsRequests) return;
  const failure = { by: error, error, context, work: workOf(response) };
  // A factory gets the context, which a middleware does not have.
  if (isOver(response) || !canTell(response, failure)) return logFailure(failure, response);
  attach(response, failure, context && factories.get(error));
  noteSent(response, error);
}
