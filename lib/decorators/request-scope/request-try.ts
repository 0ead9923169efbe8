import { AsyncLocalStorage } from 'node:async_hooks';
import { Subscription } from 'rxjs';
import { leaseMsOf } from '../stream/stream-hold.js';
import type { RequestHold } from './request-hold.js';

/** One try of a handler inside the lock of its request: the interceptors inside the lock, and the handler. */
export class RequestTry {
  readonly hold: RequestHold;
  /** The try as its reader sees it. */
  readonly reading = new Subscription();
  /** Identifies the handler that the lock is for. */
  readonly #handler: object;
  /** The try of another lock of the same request that this one is in. */
  readonly #outer = currentTry();
  #hasCalledHandler = false;
  /** Ends the try when its request is over, if it has not called the handler by then. */
  #limit: NodeJS.Timeout | undefined;

  constructor(hold: RequestHold, handler: object) {
    this.hold = hold;
    this.#handler = handler;
    this.reading.add(() => clearTimeout(this.#limit));
  }

  /** Finds the try of a handler: this one, or one around it. */
  ofHandler(handler: object): RequestTry | undefined {
    return this.#handler === handler ? this : this.#outer?.ofHandler(handler);
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
}

const current = new AsyncLocalStorage<RequestTry>();

/** Returns the innermost try that the running async context works for. */
export function currentTry(): RequestTry | undefined {
  return current.getStore();
}
