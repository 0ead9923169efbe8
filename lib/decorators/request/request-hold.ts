import type { ServerResponse } from 'node:http';
import type { Lock } from '../../core/lock/lock.js';
import type { LockExceptionFactory } from '../../http/exception-factory.js';
import { clientGone, attachToRequest } from '../../http/http-request.js';
import { isOver, onceEnded } from '../../http/response-end.js';
import { assertNotLost } from '../stream/stream-hold.js';

interface HoldParts {
  /** The handler it is for. */
  readonly site: object;
  readonly lock: Lock;
  readonly response: ServerResponse;
  /** The lock of the same request that was taken before. */
  readonly outer: RequestHold | undefined;
  /** Of the module whose lock it is. */
  readonly exceptionFactory: LockExceptionFactory | undefined;
}

/** A lock that an HTTP request holds: until the response has been sent, or its client has gone, and nothing works for it any more. */
export class RequestHold {
  readonly site: object;
  readonly lock: Lock;
  readonly outer: RequestHold | undefined;
  readonly exceptionFactory: LockExceptionFactory | undefined;
  /** When the lock may be given back. Never rejects. */
  readonly ended: Promise<void>;
  #resolve!: () => void;
  #working = 0;
  #isAnswered = false;
  #isOver = false;

  constructor({ site, lock, response, outer, exceptionFactory }: HoldParts) {
    this.site = site;
    this.lock = lock;
    this.outer = outer;
    this.exceptionFactory = exceptionFactory;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    const answered = (): void => {
      this.#isAnswered = true;
      this.#look();
    };
    // It says nothing any more. A handler that does its work after an early answer begins before this.
    if (isOver(response)) setImmediate(answered);
    else onceEnded(response, answered);
  }

  /** Whether the lock is still held, and nothing works for the request just now. */
  get isIdle(): boolean {
    return this.lock.isHeld && this.#working === 0 && !this.#isOver;
  }

  /** This one, or the one around it that is for that handler. */
  of(site: object): RequestHold | undefined {
    return this.site === site ? this : this.outer?.of(site);
  }

  /**
   * Something begins to work for the request; returns what says that it has ended. Pipes and interceptors may have run since the lock was
   * taken, so it is asked again.
   *
   * @throws LockLostError when the lock is not held any more
   */
  enter(): () => void {
    if (this.#isOver) throw clientGone();
    try {
      this.lock.assertHeld();
    } catch (error) {
      throw attachToRequest(error, this.exceptionFactory);
    }
    this.#working++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#working--;
      this.#look();
    };
  }

  /** @throws LockLostError when the lock is lost, or the request has given it back: the handler itself may have done so */
  assertReadable(): void {
    if (this.#isOver) this.lock.assertHeld();
    else assertNotLost(this.lock);
  }

  #look(): void {
    if (!this.#isAnswered || this.#working > 0) return;
    this.#isOver = true;
    this.#resolve();
  }
}
