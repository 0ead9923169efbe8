import type { ServerResponse } from 'node:http';
import type { ExecutionContext } from '@nestjs/common';
import { LockError, type LockErrorCode } from '../errors/lock.error.js';
import { logger } from '../log/logger.js';
import { requestOf, routeOf, sendsEvents } from './handler-names.js';
import type { RequestWork } from './request-work.js';

/** The `Retry-After` of an error that has none of its own, in seconds. */
const RETRY_AFTER_SECONDS = 1;

/**
 * How many errors to remember: the first one, which `Promise.all()` throws, and the last ones. An interceptor may call a
 * handler again without end; of tries that run at once, and of calls in one try, the error of any may be sent.
 */
const MOST_FAILURES = 16;

/** The errors that show a mistake in the code, not load, an outage or a client's mistake. */
export const MISTAKES: ReadonlySet<LockErrorCode> = new Set(['LOCK_OPTIONS_INVALID', 'LOCK_NOT_WIRED'] as const);

/** An error of a request, or of one try of its handler. */
export interface Failure {
  /** Identifies the try. */
  readonly by: object;
  readonly error: LockError;
  /** How Nest calls the handler; undefined in a middleware. */
  readonly context: ExecutionContext | undefined;
  readonly work: RequestWork;
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

/**
 * Notes that an error is about to be sent.
 *
 * @returns whether it is one that is remembered
 */
export function noteSent(response: ServerResponse, error: LockError): boolean {
  return responses.get(response)?.sends(error) ?? false;
}

/**
 * A response that may tell of a lock error. Its methods are wrapped once for all tries: thousands of wrappers would
 * overflow the stack.
 */
class FailedResponse {
  readonly #response: ServerResponse;
  /** The last one at the end, or the one that is about to be sent. */
  readonly #failures = new Map<LockError, Failure>();
  /** The one that is about to be sent, where that is known. */
  #sent: LockError | undefined;
  #guardsHead = false;
  #guardsEvents = false;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  add(failure: Failure): void {
    const failures = this.#failures;
    failures.delete(failure.error);
    failures.set(failure.error, failure);
    const [, second] = failures.keys();
    if (second && failures.size > MOST_FAILURES) failures.delete(second);
  }

  sends(error: LockError): boolean {
    const failure = this.#failures.get(error);
    if (!failure) return false;
    this.add(failure);
    this.#sent = error;
    return true;
  }

  /** Adds to the head of the response if an error becomes that. */
  guardHead(): void {
    if (this.#guardsHead) return;
    this.#guardsHead = true;
    const response = this.#response;
    const writeHead = response.writeHead.bind(response) as (...args: unknown[]) => ServerResponse;
    response.writeHead = (status: number, ...rest: unknown[]) => {
      this.#respondWith(status);
      this.#failures.clear();
      return writeHead(status, ...rest);
    };
  }

  /**
   * Logs one failure of each try that may have been sent with a status. Adds the header of the last one, if that may be
   * retried, and so may all others where it is not known which one is sent.
   */
  #respondWith(status: number): void {
    const response = this.#response;
    const used = [...this.#failures.values()]
      .toReversed()
      .filter(({ error }) => error.isUsedAsResponse && error.getStatus() === status);
    const tries = new Set<object>();
    for (const failure of used) {
      if (!tries.has(failure.by)) logFailure(failure, response);
      tries.add(failure.by);
    }
    const last = used[0];
    if (!last) return;
    // Clients resend by themselves when they see this header, so a request that may be half done must not have it.
    const perhapsSent = last.error === this.#sent ? [last] : used;
    if (perhapsSent.every(({ error }) => error.mayBeRetried) && !response.hasHeader('Retry-After'))
      response.setHeader('Retry-After', String(last.error.retryAfter ?? RETRY_AFTER_SECONDS));
    if (isOnClosedServer(response)) response.setHeader('Connection', 'close');
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
    if (this.#failures.size === 0 || !(typeof chunk === 'string' || Buffer.isBuffer(chunk))) return chunk;
    const event = chunk.toString();
    if (!event.startsWith('event: error\n')) return chunk;
    const failure = [...this.#failures.values()].findLast(({ error }) => event.includes(error.message));
    if (!failure) return chunk;
    logFailure(failure, this.#response);
    const { error } = failure;
    const { message } = error;
    if (error instanceof LockError) failure.work.judgeEnd(error);
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
