import { STATUS_CODES } from 'node:http';
import { HttpException } from '@nestjs/common';
import { setLazyStack, withoutTraces } from './error-stack.js';

/** The stable code of each lock error. */
export type LockErrorCode =
  'LOCK_TIMEOUT' | 'LOCK_UNAVAILABLE' | 'LOCK_LOST' | 'LOCK_KEY_INVALID' | 'LOCK_OPTIONS_INVALID' | 'LOCK_NOT_WIRED';

/** The body that an HTTP client gets: never with the key, which can name a customer. */
export interface LockErrorBody {
  readonly statusCode: number;
  readonly code: LockErrorCode;
  readonly message: string;
  readonly error: string;
  /** Whether nothing has been done, so that the same request may be sent again. */
  readonly retryable: boolean;
  /** When it may be sent again, in seconds, if that is known. */
  readonly retryAfter?: number;
}

interface LockErrorFacts {
  readonly code: LockErrorCode;
  readonly status: number;
  /** What happened, to which key, with numbers, and what to try. */
  readonly detail: string;
  /** What a client gets to read, where that is not `message`. */
  readonly clientMessage?: string;
  /** @default false */
  readonly retryable?: boolean;
  /** In seconds. */
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/** Ends the message of an error that comes up inside the work of another lock. */
export const HALF_DONE = ', and part of the work may be done. Check its result before trying again.';

const BRAND = Symbol.for('nest-redis-lock:error');

/**
 * The base of every error of this library. `message` may be shown to anybody; `detail` is for the developer and the
 * log, and names the key. Printing the error, by its `stack` or `util.inspect`, shows both.
 *
 * It is an `HttpException`, so Nest sends the right status whichever filter catches it, even an app's own catch-all
 * filter, and a request that uses no lock pays nothing for it.
 */
export abstract class LockError extends HttpException {
  readonly code: LockErrorCode;
  /** What happened, to which key, with numbers, and what to try. Not for clients: keys can name a customer. */
  readonly detail: string;
  /** Whether nothing has been done, so that the same call may be made again. */
  readonly retryable: boolean;
  /**
   * When it may be made again, in seconds, if that is known: as long as the call has waited, at least one, at most
   * until the end of the holder's lease; one more for each waiter ahead; at most 60.
   */
  readonly retryAfter: number | undefined;
  #answered = false;
  /** Whether the log tells of it otherwise, such as in the sum of an outage. */
  #told = false;
  /** What its app answers in the place of it: asked for when somebody first wants to know. */
  #answer: { ask: (() => HttpException | undefined) | undefined; exception?: HttpException | undefined } | undefined;

  /** @param message safe to show: filters that are common in Nest apps send it to clients */
  protected constructor(
    name: string,
    message: string,
    { code, status, detail, clientMessage = message, retryable = false, retryAfter, cause }: LockErrorFacts,
  ) {
    const body: LockErrorBody = {
      statusCode: status,
      code,
      message: clientMessage,
      error: STATUS_CODES[status] ?? 'Error',
      retryable,
      ...(retryAfter === undefined ? {} : { retryAfter }),
    };
    const traces = withoutTraces();
    super(body, status, cause === undefined ? undefined : { cause });
    traces.again();
    this.name = name;
    this.message = message;
    this.code = code;
    this.detail = detail;
    this.retryable = retryable;
    this.retryAfter = retryAfter;
    setLazyStack(this, new.target);
    Object.defineProperty(this, BRAND, { value: true });
  }

  /** @internal */
  get isTold(): boolean {
    return this.#told;
  }

  /** @internal */
  set isTold(isTold: boolean) {
    this.#told = isTold;
  }

  /** Whether somebody, such as an exception filter, asked for what to answer with. @internal */
  get isAnswered(): boolean {
    return this.#answered;
  }

  /** Lets an exception of the app say what to answer, and in which words. @internal */
  answerWith(ask: () => HttpException | undefined): void {
    this.#answer ??= { ask };
  }

  /** What a client gets to read by default. @internal */
  get body(): LockErrorBody {
    return super.getResponse() as LockErrorBody;
  }

  override getResponse(): string | object {
    this.#answered = true;
    return this.#exception?.getResponse() ?? super.getResponse();
  }

  override getStatus(): number {
    this.#answered = true;
    return this.#exception?.getStatus() ?? super.getStatus();
  }

  get #exception(): HttpException | undefined {
    const answer = this.#answer;
    const ask = answer?.ask;
    if (!answer || !ask) return answer?.exception;
    // It may itself ask for the default answer.
    answer.ask = undefined;
    answer.exception = ask();
    if (answer.exception) this.message = answer.exception.message;
    return answer.exception;
  }
}

/** Tells whether a value is an error of this library, also when two copies of the package are installed. */
export function isLockError(value: unknown): value is LockError {
  // A user may throw anything, such as a mock that has every property, or one that throws when it is looked at.
  try {
    return typeof value === 'object' && value !== null && Object.getOwnPropertyDescriptor(value, BRAND)?.value === true;
  } catch {
    return false;
  }
}

/** Returns the text of an error for the log: the detail of a lock error. */
export function detailOf(error: Error): string {
  return isLockError(error) ? error.detail : error.message;
}
