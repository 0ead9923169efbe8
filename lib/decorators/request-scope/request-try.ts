import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import { Subscription } from 'rxjs';
import { PacedTurns } from '../../clock/paced-turns.js';
import { leaseMsOf } from '../stream/stream-hold.js';
import type { RequestHold } from './request-hold.js';

interface TryParts {
  readonly hold: RequestHold;
  /** Identifies the handler that the lock is for. */
  readonly handler: object;
  readonly response: ServerResponse;
  /** The try of another lock of the same request that this one is in. */
  readonly outer: RequestTry | undefined;
  /** Runs work inside the locks of the try. */
  readonly inLocks: <T>(work: () => T) => T;
}

/** One try of a handler inside the lock of its request: the interceptors inside the lock, and the handler. */
export class RequestTry {
  readonly hold: RequestHold;
  /** The try as its reader sees it. */
  readonly reading = new Subscription();
  readonly #handler: object;
  readonly #outer: RequestTry | undefined;
  readonly #inLocks: TryParts['inLocks'];
  /** What a request has started may live long, and keeps this: but not the response. */
  readonly #response: WeakRef<ServerResponse>;
  #hasCalledHandler = false;
  readonly #refusals = new PacedTurns();
  #fail: ((error: unknown) => void) | undefined;
  /** Ends the try when its request is over, if it has not called the handler by then. */
  #limit: NodeJS.Timeout | undefined;

  constructor({ hold, handler, response, outer, inLocks }: TryParts) {
    this.hold = hold;
    this.#handler = handler;
    this.#outer = outer;
    this.#inLocks = inLocks;
    this.#response = new WeakRef(response);
    newest.set(response, this);
    this.reading.add(() => clearTimeout(this.#limit));
  }

  /** Finds the try of a handler: this one, or one around it. */
  ofHandler(handler: object): RequestTry | undefined {
    return this.#handler === handler ? this : this.#outer?.ofHandler(handler);
  }

  /** Finds the try around the one of a handler: this one if that has not begun. */
  around(handler: object): RequestTry | undefined {
    const begun = this.ofHandler(handler);
    return begun ? begun.#outer : this;
  }

  isOf(response: ServerResponse): boolean {
    return this.#response.deref() === response;
  }

  isInside(outer: RequestTry): boolean {
    return this.#outer === outer || (this.#outer?.isInside(outer) ?? false);
  }

  /**
   * Notes that the handler is called.
   *
   * @returns a function that notes the end of its work
   * @throws LockLostError when the lock is not held any more
   */
  enterHandler(): () => void {
    const leave = this.hold.enter();
    this.#hasCalledHandler = true;
    clearTimeout(this.#limit);
    return leave;
  }

  /** @param fail ends the try with an error */
  onEndless(fail: (error: unknown) => void): void {
    this.#fail = fail;
    this.reading.add(() => (this.#fail = undefined));
  }

  /**
   * Refuses the handler, in a later turn of the event loop. Ends an interceptor that tries again without end; an `async`
   * one can't be ended, and goes on slowly.
   */
  async refuse(error: unknown): Promise<never> {
    const turn = this.#refusals.next();
    if (this.#refusals.areMany) this.#fail?.(error);
    await turn;
    throw error;
  }

  /**
   * Gives interceptors and pipes that come before the handler one lease more when the request is over: they may wait
   * for their client, such as for the rest of an upload, and Nest goes on reading them for a client that has gone.
   */
  limit(): void {
    if (this.#hasCalledHandler) return;
    this.#limit ??= setTimeout(() => this.reading.unsubscribe(), leaseMsOf(this.hold.lock)).unref();
  }

  run<T>(work: () => T): T {
    return current.run(this, work);
  }

  /** Runs work inside the try, also when it is called in the async context of another request. */
  goOn<T>(work: () => T): T {
    return currentTry() === this ? work() : this.#inLocks(() => this.run(work));
  }
}

/** The try of each request that has begun last. */
const newest = new WeakMap<ServerResponse, RequestTry>();

const current = new AsyncLocalStorage<RequestTry>();

/** Returns the innermost try that the running async context works for. */
export function currentTry(): RequestTry | undefined {
  return current.getStore();
}

/**
 * Finds the try that works for a request: the one of the running async context, or the one that has begun last if that
 * is inside it, or if the context is of another request. The callbacks of a client run in the context in which it has
 * connected, so an interceptor that waits for one goes on there.
 */
export function tryOf(response: ServerResponse): RequestTry | undefined {
  const here = currentTry();
  const last = newest.get(response);
  return here?.isOf(response) && !last?.isInside(here) ? here : last;
}
