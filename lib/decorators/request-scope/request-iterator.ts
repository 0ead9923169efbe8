import { AsyncLocalStorage } from 'node:async_hooks';
import { IteratorSource } from '../stream/iterator-source.js';
import { OpenCalls } from '../stream/open-calls.js';
import { assertNotLost, leaseMsOf, toldError, type StreamLock } from '../stream/stream-hold.js';
import type { HandlerCall } from './handler-call.js';
import { Turn } from './handler-turn.js';
import type { RequestHold } from './request-hold.js';

type Result = IteratorResult<unknown>;

/**
 * Lets an async iterator that a handler has returned work for the request: from its first `next()` until it is done,
 * has failed, or is left by `return()` or `throw()`. Runs it in the async context of the lock. Nest reads it after the
 * handler has returned, and leaves it when the client has gone, while its body may still run: for one lease at most,
 * unless it is a generator, whose `return()` waits for its body.
 */
export class RequestIterator implements AsyncIterableIterator<unknown> {
  readonly #source: IteratorSource;
  readonly #hold: RequestHold;
  readonly #call: HandlerCall;
  readonly #inside = AsyncLocalStorage.snapshot();
  /** Notes the end of the work. */
  #leave: (() => void) | undefined;
  /** The turn that the work needs. */
  #turn: Turn | Promise<Turn> | undefined;
  readonly #calls = new OpenCalls();
  #isLeft = false;
  #hasEnded = false;

  constructor(returned: AsyncIterableIterator<unknown>, call: HandlerCall) {
    this.#source = new IteratorSource(returned);
    this.#hold = call.hold;
    this.#call = call;
  }

  async next(...sent: [] | [unknown]): Promise<Result> {
    return this.#read(() => this.#source.next(...sent));
  }

  async throw(error: unknown): Promise<Result> {
    if (this.#hasEnded) throw error;
    try {
      return await this.#read(() => this.#source.throw(error));
    } finally {
      // It may go on after an error.
      this.#isLeft ||= this.#hasEnded;
      this.#leaveOnceSettled();
    }
  }

  /** Lets every reader leave, whatever has become of the lock: the source closes what it has open. */
  async return(value?: unknown): Promise<Result> {
    if (this.#hasEnded) return { done: true, value };
    this.#leave ??= this.#hold.work();
    return this.#step(() => this.#source.return(value), true);
  }

  [Symbol.asyncIterator](): this {
    return this;
  }

  async #read(go: () => Promise<Result>): Promise<Result> {
    if (this.#hasEnded) return { done: true, value: undefined };
    this.#isLeft = false;
    try {
      this.#turn ??= this.#inside(() => this.#hold.takeTurn(this.#call));
      if (!(this.#turn instanceof Turn)) {
        const turn = await this.#turn;
        if (this.#isDone) {
          turn.end();
          return { done: true, value: undefined };
        }
        this.#turn = turn;
      }
      if (this.#leave) assertNotLost(this.#streamLock);
      else this.#leave = this.#hold.startReading(this.#call.onLost);
    } catch (error) {
      throw this.#stopped(error);
    }
    const result = await this.#step(go, false);
    try {
      assertNotLost(this.#streamLock);
    } catch (error) {
      throw this.#stopped(error);
    }
    return result;
  }

  /** @param isLast whether the reader leaves */
  async #step(go: () => Promise<Result>, isLast: boolean): Promise<Result> {
    try {
      const turn = this.#turn;
      const result = await this.#calls.during(() => this.#inside(() => (turn instanceof Turn ? turn.run(go) : go())));
      if (result.done) this.#hasEnded = true;
      return result;
    } catch (error) {
      this.#hasEnded = true;
      throw isLast ? this.#attached(error) : this.#inside(() => toldError(this.#streamLock, error));
    } finally {
      this.#isLeft ||= isLast;
      this.#leaveOnceSettled();
    }
  }

  /** Stops the source of a reader that is refused. */
  #stopped(error: unknown): unknown {
    if (!this.#hasEnded) void this.return().catch(() => undefined);
    this.#hasEnded = true;
    return this.#attached(error);
  }

  #attached(error: unknown): unknown {
    return this.#inside(() => this.#hold.requests.attachError(error));
  }

  get #streamLock(): StreamLock {
    return { ...this.#call, lock: this.#hold.lock, requests: this.#hold.requests };
  }

  get #isDone(): boolean {
    return this.#isLeft || this.#hasEnded;
  }

  #leaveOnceSettled(): void {
    if (!this.#isDone) return;
    const longestMs = this.#isLeft ? leaseMsOf(this.#hold.lock) : undefined;
    this.#calls.onceSettled(() => this.#leaveIfDone(), longestMs);
  }

  #leaveIfDone(): void {
    if (!this.#isDone) return;
    if (this.#turn instanceof Turn) this.#turn.end();
    this.#turn = undefined;
    this.#leave?.();
    this.#leave = undefined;
  }
}
