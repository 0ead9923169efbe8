import { STATUS_CODES } from 'node:http';
// Not from '@nestjs/common' itself, which takes 100 ms to load: the command of this package has no other use for Nest.
import { HttpException } from '@nestjs/common/exceptions/http.exception.js';
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
  /** Whether nothing has been done, so the client may send the same request again. */
  readonly retryable: boolean;
  /** When it may be sent again, in seconds, if that is known. */
  readonly retryAfter?: number;
}

interface LockErrorFacts {
  readonly code: LockErrorCode;
  readonly status: number;
  /** What happened, to which key, with numbers, and what to try. */
  readonly detail: string;
  /** The message for clients, where that is not `message`. */
  readonly clientMessage?: string;
  /** @default false */
  readonly retryable?: boolean;
  /** In seconds. */
  readonly retryAfter?: number | undefined;
  readonly cause?: unknown;
}

/**
 * How the message of a retryable error ends, and that of one that happens inside the work of another lock, or is the
 * response of a request after such work.
 */
export const TRY_AGAIN = '. Try again in a moment.';
export const HALF_DONE = ', and part of the work may be done. Check its result before trying again.';

/** How many of its requests an error remembers: an app may keep it in a cache. */
const MOST_REQUESTS = 1000;

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
  /**
   * Whether nothing has been done, so the same call may be made again, and so may the HTTP request that it was made in:
   * not after other locked work of that request, as the error may become the response.
   */
  readonly retryable: boolean;
  /**
   * When it may be made again, in seconds, if that is known: as long as the call has waited, at least one, at most
   * until the end of the holder's lease; one more for each waiter ahead; at most 60.
   */
  readonly retryAfter: number | undefined;
  #isUsedAsResponse = false;
  #isRetryForbidden = false;
  /** Whether the log has it already, such as in the summary of an outage. */
  #isReported = false;
  /** Each tells whether one of its requests has done work, or waits for some, that a retry would repeat. */
  #requests: Set<() => boolean> | undefined;
  /** Makes the exception that the app sends instead, when somebody first needs it. */
  #replacement:
    { make: (() => HttpException | undefined) | undefined; exception?: HttpException | undefined } | undefined;

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
  get isReported(): boolean {
    return this.#isReported;
  }

  /** @internal */
  set isReported(isReported: boolean) {
    this.#isReported = isReported;
  }

  /** Whether somebody, such as an exception filter, has read its status or body. @internal */
  get isUsedAsResponse(): boolean {
    return this.#isUsedAsResponse;
  }

  /** `retryable`, though the app may have frozen or changed that. @internal */
  get mayBeRetried(): boolean {
    return this.retryable && !this.#isRetryForbidden;
  }

  /**
   * Names a request whose response it may become. Where callers share the promise of one call, it has several.
   * @internal
   */
  mayBecomeResponse(hasWorked: () => boolean): void {
    const requests = (this.#requests ??= new Set());
    requests.add(hasWorked);
    if (requests.size > MOST_REQUESTS) requests.delete(requests.values().next().value!);
  }

  /** Lets an exception of the app replace its status, body and message. @internal */
  replaceWith(make: () => HttpException | undefined): void {
    this.#replacement ??= { make };
  }

  /** The default body of the HTTP response. @internal */
  get body(): LockErrorBody {
    const body = super.getResponse() as LockErrorBody;
    if (this.mayBeRetried === body.retryable) return body;
    const { statusCode, code, message, error } = body;
    return { statusCode, code, message: halfDone(message), error, retryable: false };
  }

  override getResponse(): string | object {
    this.#becomesResponse();
    return this.#replacingException?.getResponse() ?? this.body;
  }

  override getStatus(): number {
    this.#becomesResponse();
    return this.#replacingException?.getStatus() ?? super.getStatus();
  }

  #becomesResponse(): void {
    this.#isUsedAsResponse = true;
    for (const hasWorked of this.#requests ?? []) if (hasWorked()) return this.forbidRetry();
  }

  /** Is not retryable any more: one of its requests has done work that another try of the request would repeat. @internal */
  forbidRetry(): void {
    if (!this.retryable) return;
    this.#isRetryForbidden = true;
    // The app may have frozen it, or given it a message of its own.
    const message: unknown = this.message;
    if (typeof message === 'string') Reflect.set(this, 'message', halfDone(message));
    Reflect.set(this, 'retryable', false);
    Reflect.set(this, 'retryAfter', undefined);
  }

  get #replacingException(): HttpException | undefined {
    const replacement = this.#replacement;
    const make = replacement?.make;
    if (!replacement || !make) return replacement?.exception;
    // `make` may itself read the default status and body.
    replacement.make = undefined;
    replacement.exception = make();
    // The app may have frozen it.
    if (replacement.exception) Reflect.set(this, 'message', replacement.exception.message);
    return replacement.exception;
  }
}

const halfDone = (message: string): string => message.replace(TRY_AGAIN, HALF_DONE);

/** Tells whether a value is an error of this library, also when two copies of the package are installed. */
export function isLockError(value: unknown): value is LockError {
  // A user may throw anything, such as a mock that has every property, or an object that throws when it is read.
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
