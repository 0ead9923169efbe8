import { nextTurn } from '../clock/next-turn.js';
import type { LockContext } from '../core/nesting/lock-context.js';
import type { Refusal } from '../core/request/lock-request.js';
import { TooSlowError } from '../core/too-slow.error.js';
import { isLockError } from '../errors/lock.error.js';
import type { LockLostError } from '../errors/lock-lost.error.js';
import { LockOptionsError } from '../errors/lock-options.error.js';
import { LockTimeoutError } from '../errors/lock-timeout.error.js';
import { LockUnavailableError } from '../errors/lock-unavailable.error.js';
import { shown } from '../errors/messages.js';
import { coverageOf } from '../errors/store-outage.js';
import type { OutageReporter } from './outage-reporter.js';
import type { RequestPort } from './request-port.js';

interface CallErrorsParts {
  readonly context: LockContext;
  readonly requests: RequestPort;
  readonly outage: OutageReporter | undefined;
  /** Whether the app shuts down. */
  readonly isEnding: () => boolean;
}

/** Makes the errors that the calls of a service reject with. */
export class CallErrors {
  readonly #parts: CallErrorsParts;

  constructor(parts: CallErrorsParts) {
    this.#parts = parts;
  }

  timeout(refusal: Refusal): LockTimeoutError {
    const { context } = this.#parts;
    return new LockTimeoutError({ ...refusal, holding: context.heldKeys(), nested: context.isInside() });
  }

  /**
   * Rejects a call that got no lock, in a later turn of the event loop: a caller that tries again at once leaves time
   * for timers and sockets, although this process alone refused it.
   *
   * @param signal of the call. Its reason may be anything, even a value whose prototype can't be read, so it is passed
   *   on as it is
   */
  async refuse(error: unknown, signal: AbortSignal | undefined): Promise<never> {
    const own = this.#failed(error, signal);
    await nextTurn();
    throw own;
  }

  /**
   * Returns the reply to a question about a key. If there is none, the work of a lock that asks may be half done.
   *
   * @param isRepeatable whether the same question may be asked again, although the reply to this one was lost; default
   *   true
   */
  async replyTo<T>(question: Promise<T>, { isRepeatable = true } = {}): Promise<T> {
    const { requests, outage } = this.#parts;
    try {
      return await question;
    } catch (error) {
      if (!isUnavailable(error)) throw error;
      const own = this.#ownOf(error, isRepeatable);
      outage?.questionFailed(own, !coverageOf(error));
      throw requests.attachError(own);
    }
  }

  /**
   * Makes the error of a call that got no lock, reports it as part of an outage, and attaches it to the request of the
   * call.
   */
  #failed(error: unknown, signal: AbortSignal | undefined): unknown {
    const { requests, outage, isEnding } = this.#parts;
    const isReason = signal?.aborted && signal.reason === error;
    if (isReason || !isUnavailable(error)) return requests.attachError(error);
    const own = this.#ownOf(error);
    // A lease that is too short for one call is no outage.
    if (!isEnding() && !(error instanceof TooSlowError)) outage?.failed(own);
    return requests.attachError(own);
  }

  /** Makes the error of one call. One error may have failed several, and each of them gets its own answer. */
  #ownOf(error: LockUnavailableError, isRepeatable = true): LockUnavailableError {
    const { context, requests } = this.#parts;
    const nested = !isRepeatable || context.isInside();
    return nested || requests.changesErrors ? new LockUnavailableError(error.detail, error.cause, { nested }) : error;
  }
}

/** Asks first what can be asked of any value: somebody may throw one whose prototype can't be read. */
const isUnavailable = (error: unknown): error is LockUnavailableError =>
  isLockError(error) && error instanceof LockUnavailableError;

/**
 * Makes the error of a call that lost its lock.
 *
 * @param cause what the work threw, unless that was the loss itself
 */
export function lostError(lost: LockLostError, requests: RequestPort, cause?: unknown): LockLostError {
  return requests.attachError(cause === lost ? lost : lost.withCause(cause));
}

/** Makes the error of a call that was given something else than work. */
export const noWork = (work: unknown): LockOptionsError =>
  new LockOptionsError(`The work of withLock() is ${shown(work)}, but must be a function: withLock(key, () => …).`);
