import type { ServerResponse } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { LockError, type LockErrorCode } from '../errors/lock.error.js';
import { remember } from '../errors/remember.js';
import { logger } from '../log/logger.js';
import { requestOf, routeOf, sendsEvents } from './handler-names.js';

/** The `Retry-After` of an error that has none of its own, in seconds. */
const RETRY_AFTER_SECONDS = 1;

/** The errors that show a mistake in the code, not load, an outage or a client's mistake. */
export const MISTAKES: ReadonlySet<LockErrorCode> = new Set(['LOCK_OPTIONS_INVALID', 'LOCK_NOT_WIRED'] as const);

/** An error of a request, or of one try of its handler. */
export interface Failure {
  /** Identifies the try. */
  readonly by: object;
  readonly error: LockError;
  /** How Nest calls the handler; undefined in a middleware. */
  readonly context: ExecutionContext | undefined;
}

const responses = new WeakMap<ServerResponse, FailedResponse>();

/** Remembers an error that may become the response. */
export function noteFailure(response: ServerResponse, failure: Failure): void {
  if (!canTell(response, failure)) return;
  let failed = responses.get(response);
  if (!failed) responses.set(response, (failed = new FailedResponse(response)));
  failed.add(failure);
  if (response.headersSent) failed.guardEvents();
  else failed.guardHead();
}

/** Whether the response, which is not over, can still tell of an error: by its status, or by an event. */
export function canTell({ headersSent }: ServerResponse, { context }: Failure): boolean {
  return !headersSent || (context !== undefined && sendsEvents(context));
}

/** Whether an error is remembered that may become the response. */
export function hasNoted(response: ServerResponse, error: LockError): boolean {
  return responses.get(response)?.has(error) ?? false;
}

/**
 * A response that may tell of a lock error. Its methods are wrapped once for all tries: thousands of wrappers would
 * overflow the stack.
 */
class FailedResponse {
  readonly #response: ServerResponse;
  /** Of tries that run at once, and of calls in one try, the error of any may be sent. The last one is at the end. */
  #failures: readonly Failure[] = [];
  #guardsHead = false;
  #guardsEvents = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  add(failure: Failure): void {
    const others = this.#failures.filter(({ error }) => error !== failure.error);
    this.#failures = remember(others, failure);
  }

  has(error: LockError): boolean {
    return this.#failures.some((failure) => failure.error === error);
  }

  /** Adds to the head of the response if an error becomes that. */
  guardHead(): void {
    if (this.#guardsHead) return;
    this.#guardsHead = true;
    const response = this.#response;
    const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
    response.writeHead = (status: number, ...rest: unknown[]) => {
      const [sent, ...others] = this.#sentWith(status);
      if (sent) respondWith(sent, response);
      for (const other of others) logFailure(other, response);
      this.#failures = [];
      return writeHead(status, ...rest);
    };
  }

  /**
   * Returns what may have been sent with a status, one failure of each try: first the one whose status or body was read
   * last, as a handler may look at several errors and throw any of them.
   */
  #sentWith(status: number): Failure[] {
    const tries = new Set<object>();
    return this.#failures
      .filter(({ error }) => error.usedAsResponse > 0)
      .sort((one, other) => other.error.usedAsResponse - one.error.usedAsResponse)
      .filter(({ by, error }) => error.getStatus() === status && !tries.has(by) && tries.add(by));
  }

  /**
   * Replaces the message in the last event. Nest ends a stream of events with the error's message; the client gets the
   * message of its body, the log the detail.
   */
  guardEvents(): void {
    if (this.#guardsEvents) return;
    this.#guardsEvents = true;
    const response = this.#response;
    const write = response.write.bind(response) as (chunk: unknown, ...rest: unknown[]) => boolean;
    response.write = (chunk: unknown, ...rest: unknown[]) => write(this.#event(chunk), ...rest);
  }

  #event(chunk: unknown): unknown {
    if (this.#failures.length === 0 || !(typeof chunk === 'string' || Buffer.isBuffer(chunk))) return chunk;
    const event = chunk.toString();
    if (!event.startsWith('event: error\n')) return chunk;
    const failure = this.#failures.findLast(({ error }) => event.includes(error.message));
    if (!failure) return chunk;
    logFailure(failure, this.#response);
    const { error } = failure;
    const { message } = error;
    if (error instanceof LockError) error.forbidRetryAfterWork();
    return event.replace(message, () => error.body.message);
  }
}

/** Logs what the client doesn't get to read. */
export function logFailure({ error, context }: Failure, response: ServerResponse): void {
  if (error.isReported) return;
  const line = `${context ? routeOf(context) : requestOf(response)}: ${error.detail}`;
  // A stack only where the place in the code says something new.
  if (MISTAKES.has(error.code)) logger.error(line, error.stack);
  else logger.warn(line);
}

function respondWith(failure: Failure, response: ServerResponse): void {
  logFailure(failure, response);
  // Clients resend by themselves when they see this header, so a request that may be half done must not have it.
  const { retryable, retryAfter = RETRY_AFTER_SECONDS } = failure.error.body;
  if (retryable && !response.hasHeader('Retry-After')) response.setHeader('Retry-After', String(retryAfter));
  if (isOnClosedServer(response)) response.setHeader('Connection', 'close');
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
