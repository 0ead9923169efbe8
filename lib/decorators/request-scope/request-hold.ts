import type { ServerResponse } from 'node:http';
import type { Subscription } from 'rxjs';
import { nextTurn } from '../../clock/next-turn.js';
import type { Lock } from '../../core/lock/lock.js';
import type { HeldMode } from '../../core/request/held-mode.js';
import { LockOptionsError } from '../../errors/lock-options.error.js';
import { lockNames } from '../../errors/messages.js';
import { clientGone } from '../../http/http-request.js';
import { isOver, onceEnded } from '../../http/response-end.js';
import type { RequestPort } from '../../service/request-port.js';
import { assertNotLost, leaseMsOf } from '../stream/stream-hold.js';
import { currentTurn, Turn } from './handler-turn.js';

/** A try of the handler, as the hold needs to know it. */
interface ReadTry {
  readonly reading: Subscription;
  /** Gives it a limited time more, unless the handler has been called. */
  limit(): void;
}

interface HoldParts {
  readonly lock: Lock;
  /** Takes a turn inside the lock; returns a function that ends it. */
  readonly takeTurn: () => (() => void) | Promise<() => void>;
  readonly response: ServerResponse;
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
  #takeTurn: HoldParts['takeTurn'];
  /** The mode in which the lock was acquired. */
  readonly #mode: HeldMode;
  /** The call of the handler that had its turn last. */
  #lastCall: object | undefined;
  #resolve!: () => void;
  #working = 0;
  #hasResponded = false;
  #isOver = false;
  /** The tries that are read. */
  readonly #tries = new Set<ReadTry>();
  /** What waits until nothing works for the request. */
  readonly #waiting = new Set<() => void>();
  /** How many Observables of the handler are read. */
  #streams = 0;
  /** What goes on though nobody reads it any more. */
  #unread: Subscription | undefined;
  /** Ends it, unless it ends by itself. */
  #unreadLimit: NodeJS.Timeout | undefined;
  /** Ends the work of an interceptor that reads an Observable of the handler, though nobody reads the interceptor. */
  #leaveUnread: (() => void) | undefined;

  constructor({ lock, takeTurn, response, requests }: HoldParts) {
    this.lock = lock;
    this.#mode = lock.mode;
    this.#takeTurn = takeTurn;
    this.requests = requests;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    const responded = (): void => {
      this.#hasResponded = true;
      this.#endIfDone();
    };
    // A response that is over emits nothing any more. A handler that works on after an early response has begun before
    // this runs.
    if (isOver(response)) void nextTurn().then(responded);
    else onceEnded(response, responded);
  }

  /** Whether the lock is still held, and nothing works for the request just now. */
  get isIdle(): boolean {
    return this.lock.isHeld && this.#working === 0 && !this.#isOver;
  }

  /**
   * Takes the turn of one call of the handler: an interceptor may call the handler again while the first call still
   * works. A handler that calls itself need not wait. Returns no promise if no other call works.
   *
   * @param call identifies the call: to read what it has returned, it takes its turn again
   * @throws LockTimeoutError when `wait` is over
   * @throws LockOptionsError when another call has downgraded the lock
   */
  takeTurn(call: object): Turn | Promise<Turn> {
    const outer = currentTurn();
    if (outer?.isIn(this)) return new Turn(this, outer, () => undefined);
    const begin = (end: () => void): Turn => {
      if (this.#lastCall && this.#lastCall !== call && this.lock.mode !== this.#mode) {
        end();
        throw this.requests.attachError(downgradedBefore(this.lock));
      }
      this.#lastCall = call;
      return new Turn(this, outer, end);
    };
    const taken = this.#takeTurn();
    return typeof taken === 'function' ? begin(taken) : taken.then(begin);
  }

  /**
   * Notes that a try begins, and works until its reader has what it makes.
   *
   * @throws LockLostError when the lock is not held any more
   */
  begin(begun: ReadTry): void {
    const leave = this.enter();
    this.#tries.add(begun);
    if (this.#hasResponded) begun.limit();
    begun.reading.add(() => {
      this.#tries.delete(begun);
      leave();
    });
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
      this.#limitUnread();
      this.#endIfDone();
      if (this.isIdle) for (const go of [...this.#waiting]) go();
    };
  }

  /**
   * Calls a function each time that nothing works for the request any more, while the lock is held.
   *
   * @returns a function that ends that
   */
  whenIdle(go: () => void): () => void {
    this.#waiting.add(go);
    return () => this.#waiting.delete(go);
  }

  /**
   * Notes that an Observable of the handler is read. That is work: an interceptor may read it by a promise, which
   * nobody can unsubscribe.
   *
   * @returns a function that notes the end of the reading
   * @throws HttpException when nobody reads it any more
   */
  startStream(): () => void {
    this.#refuseUnread();
    this.#streams++;
    const leave = this.work();
    return () => {
      this.#streams--;
      if (this.#streams === 0 && this.#leaveUnread) {
        setTimeout(this.#leaveUnread, leaseMsOf(this.lock)).unref();
        // The next try may be left, too.
        this.#leaveUnread = undefined;
      }
      leave();
    };
  }

  /**
   * Ends what its reader has left, such as an interceptor with `timeout()`. What has begun inside the lock may be
   * impossible to stop: the handler, and what interceptors do after it, such as a commit. So it goes on until it has
   * ended, or calls the handler again; and for one lease at most after the handler, because an interceptor may wait for
   * something that never comes. An Observable of the handler is not read any more.
   */
  goOnUnread(reading: Subscription): void {
    if (!this.lock.isHeld) return reading.unsubscribe();
    if (this.#streams > 0) return this.#endStreams(reading);
    this.#unread = reading;
    reading.add(() => {
      clearTimeout(this.#unreadLimit);
      this.#unread = this.#unreadLimit = undefined;
    });
    this.#limitUnread();
  }

  /**
   * Notes that somebody begins to read what the handler has returned. The handler itself may have released the lock.
   *
   * @returns a function that notes the end of the reading
   * @throws LockLostError when the lock is lost and `onLost` is `'throw'`
   */
  startReading(onLost: 'throw' | 'ignore'): () => void {
    if (this.#isOver) throw clientGone();
    assertNotLost({ lock: this.lock, onLost });
    return this.work();
  }

  /**
   * @throws LockLostError when the lock is lost, or the request has released it; the handler itself may have released
   * it
   */
  assertReadable(): void {
    if (this.#isOver) this.lock.assertHeld();
    else assertNotLost({ lock: this.lock, onLost: 'throw' });
  }

  /**
   * Notes that something begins to work for the request. Checks the lock again, because pipes and interceptors may have
   * run since it was taken.
   *
   * @returns a function that notes the end of that work
   * @throws LockLostError when the lock is not held any more
   */
  enter(): () => void {
    this.#refuseUnread();
    if (this.#isOver) throw clientGone();
    try {
      this.lock.assertHeld();
    } catch (error) {
      throw this.requests.attachError(error);
    }
    return this.work();
  }

  /** Ends the reading of Observables. An interceptor that goes on reading may work for some time after that. */
  #endStreams(reading: Subscription): void {
    reading.unsubscribe();
    if (this.#streams > 0) this.#leaveUnread ??= this.work();
  }

  /** Gives what nobody reads any more one lease, from when the handler has ended. */
  #limitUnread(): void {
    if (!this.#unread || this.#working > 1) return;
    const reading = this.#unread;
    this.#unreadLimit ??= setTimeout(() => reading.unsubscribe(), leaseMsOf(this.lock)).unref();
  }

  /** Refuses the handler to what nobody reads any more. Its interceptors hear that inside the lock, and may roll back. */
  #refuseUnread(): void {
    if (this.#unread) throw clientGone();
  }

  #endIfDone(): void {
    if (!this.#hasResponded) return;
    for (const each of this.#tries) each.limit();
    if (this.#working > 0) return;
    this.#isOver = true;
    // What a request has started may live long, and keeps this: but not the response, which that function knows.
    this.#takeTurn = () => {
      throw clientGone();
    };
    this.#resolve();
  }
}

function downgradedBefore({ keys }: Lock): LockOptionsError {
  const text = (lock: string): string =>
    `A handler with scope: 'request' was called again in ${lock}, which an earlier call had downgraded, so it did not ` +
    'run. Call downgrade() only in a handler that no interceptor calls again.';
  return new LockOptionsError(text('a lock'), text(lockNames(keys)));
}
