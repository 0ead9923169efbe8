import { AsyncLocalStorage } from 'node:async_hooks';
import type { ServerResponse } from 'node:http';
import type { Subscription } from 'rxjs';
import type { Lock } from '../../core/lock/lock.js';
import { clientGone } from '../../http/http-request.js';
import { isOver, onceEnded } from '../../http/response-end.js';
import type { RequestPort } from '../../service/request-port.js';
import { assertNotLost, leaseMsOf } from '../stream/stream-hold.js';
import { currentTurn, Turn } from './handler-turn.js';

interface HoldParts {
  /** Identifies the handler that the lock is for. */
  readonly handler: object;
  readonly lock: Lock;
  /** Takes a turn inside the lock; returns a function that ends it. */
  readonly takeTurn: () => (() => void) | Promise<() => void>;
  readonly response: ServerResponse;
  /** The hold that the same request took before. */
  readonly outer: RequestHold | undefined;
  /** The requests that callers of the lock service answer. */
  readonly requests: RequestPort;
}

/**
 * Holds a lock for an HTTP request: until the response has been sent or its client has gone, and nothing works for the
 * request any more.
 */
export class RequestHold {
  readonly lock: Lock;
  readonly requests: RequestPort;
  /** Resolves when the lock may be released. Never rejects. */
  readonly ended: Promise<void>;
  readonly #takeTurn: HoldParts['takeTurn'];
  readonly #handler: object;
  readonly #outer: RequestHold | undefined;
  #resolve!: () => void;
  #working = 0;
  #hasResponded = false;
  #isOver = false;
  #hasCalledHandler = false;
  /** The interceptors that are at work, as their readers see them. */
  readonly #readings = new Set<Subscription>();
  /** Ends them when the request is over, if the handler has not been called by then. */
  #limit: NodeJS.Timeout | undefined;
  /** How many Observables of the handler are read. */
  #streams = 0;
  /** What goes on though nobody reads it any more. */
  #unread: Subscription | undefined;

  constructor({ handler, lock, takeTurn, response, outer, requests }: HoldParts) {
    this.#handler = handler;
    this.lock = lock;
    this.#takeTurn = takeTurn;
    this.#outer = outer;
    this.requests = requests;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    const responded = (): void => {
      this.#hasResponded = true;
      this.#endIfDone();
    };
    // A response that is over emits nothing any more. A handler that works on after an early response has begun before
    // this runs.
    if (isOver(response)) setImmediate(responded);
    else onceEnded(response, responded);
  }

  /** Whether the lock is still held, and nothing works for the request just now. */
  get isIdle(): boolean {
    return this.lock.isHeld && this.#working === 0 && !this.#isOver;
  }

  /** Finds the hold of a handler: this one, or one around it. */
  ofHandler(handler: object): RequestHold | undefined {
    return this.#handler === handler ? this : this.#outer?.ofHandler(handler);
  }

  /**
   * Takes the turn of one try of the handler: an interceptor may call the handler again while the first try still
   * works. A handler that calls itself need not wait. Returns no promise if no other try works.
   *
   * @throws LockTimeoutError when `wait` is over
   */
  takeTurn(): Turn | Promise<Turn> {
    const outer = currentTurn();
    if (outer?.isIn(this)) return new Turn(this, outer, () => undefined);
    const taken = this.#takeTurn();
    return typeof taken === 'function' ? new Turn(this, outer, taken) : taken.then((end) => new Turn(this, outer, end));
  }

  /**
   * Notes that the interceptors inside the lock begin to work, until their reader has what they make.
   *
   * @throws LockLostError when the lock is not held any more
   */
  enter(reading: Subscription): void {
    const leave = this.#enter();
    this.#readings.add(reading);
    reading.add(() => {
      this.#readings.delete(reading);
      leave();
    });
  }

  /**
   * Notes that the handler is called.
   *
   * @returns a function that notes the end of its work
   * @throws LockLostError when the lock is not held any more
   */
  enterHandler(): () => void {
    const leave = this.#enter();
    this.#hasCalledHandler = true;
    clearTimeout(this.#limit);
    return leave;
  }

  /**
   * Notes that something works for the request, whatever has become of the lock.
   *
   * @returns a function that notes the end of that work
   */
  work(): () => void {
    this.#working++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#working--;
      this.#endIfDone();
    };
  }

  /**
   * Notes that an Observable of the handler is read.
   *
   * @returns a function that notes the end of the reading
   */
  startStream(): () => void {
    this.#refuseUnread();
    this.#streams++;
    return () => this.#streams--;
  }

  /**
   * Ends what its reader has left, such as an interceptor with `timeout()`. What the interceptors inside the lock have
   * begun may be impossible to stop, such as a commit after the handler. So unless the handler itself works, they go on
   * until they have ended or call the handler; and for one lease at most, because they may wait for something that
   * never comes.
   */
  goOnUnread(reading: Subscription): void {
    if (this.#working > 1 || this.#streams > 0 || !this.lock.isHeld) return reading.unsubscribe();
    const timer = setTimeout(() => reading.unsubscribe(), leaseMsOf(this.lock)).unref();
    this.#unread = reading;
    reading.add(() => {
      clearTimeout(timer);
      this.#unread = undefined;
    });
  }

  /**
   * Notes that somebody begins to read what the handler has returned. The handler itself may have released the lock.
   *
   * @returns a function that notes the end of the reading
   * @throws LockLostError when the lock is lost and `onLost` is `'throw'`
   */
  startReading(onLost: 'throw' | 'ignore'): () => void {
    if (this.#isOver) throw clientGone();
    if (onLost === 'throw') assertNotLost(this.lock);
    return this.work();
  }

  /**
   * @throws LockLostError when the lock is lost, or the request has released it; the handler itself may have released
   * it
   */
  assertReadable(): void {
    if (this.#isOver) this.lock.assertHeld();
    else assertNotLost(this.lock);
  }

  /**
   * Notes that something begins to work for the request. Checks the lock again, because pipes and interceptors may have
   * run since it was taken.
   *
   * @returns a function that notes the end of that work
   * @throws LockLostError when the lock is not held any more
   */
  #enter(): () => void {
    this.#refuseUnread();
    if (this.#isOver) throw clientGone();
    try {
      this.lock.assertHeld();
    } catch (error) {
      throw this.requests.attachError(error);
    }
    return this.work();
  }

  /** Ends what nobody reads any more when it goes on to the handler. */
  #refuseUnread(): void {
    if (!this.#unread) return;
    this.#unread.unsubscribe();
    throw clientGone();
  }

  #endIfDone(): void {
    if (!this.#hasResponded) return;
    if (this.#working > 0) return this.#limitReadings();
    clearTimeout(this.#limit);
    this.#isOver = true;
    this.#resolve();
  }

  /**
   * Gives interceptors and pipes that come before the handler one lease more when the request is over: they may wait
   * for their client, such as for the rest of an upload, and Nest goes on reading them for a client that has gone.
   */
  #limitReadings(): void {
    if (this.#hasCalledHandler) return;
    this.#limit ??= setTimeout(() => {
      for (const reading of [...this.#readings]) reading.unsubscribe();
    }, leaseMsOf(this.lock)).unref();
  }
}

const current = new AsyncLocalStorage<RequestHold>();

/** Returns the innermost hold of the request that the running async context works for. */
export function currentHold(): RequestHold | undefined {
  return current.getStore();
}

/** Runs work inside a hold. */
export function insideHold<T>(hold: RequestHold, work: () => T): T {
  return current.run(hold, work);
}
