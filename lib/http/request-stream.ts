import { AsyncLocalStorage } from 'node:async_hooks';
import type { Readable } from 'node:stream';
import { isObservable, Observable, type Subscriber } from 'rxjs';
import { observerIn } from '../clock/observer-in.js';

/** What the client of a gRPC call streams, as Nest gives it to a method with `@GrpcStreamMethod`. */
interface RequestStream extends Observable<unknown> {
  /** Makes Nest send what it has received so far, in the next turn of the event loop, and keep no more. */
  drainBuffer(): void;
}

export function isRequestStream(value: unknown): value is RequestStream {
  return isObservable(value) && typeof (value as Partial<RequestStream>).drainBuffer === 'function';
}

/**
 * The stream of a call that is read late: from the first subscription on, and not while the method waits for its lock.
 * So nothing is lost or kept in memory before. Otherwise it does as the stream of Nest does, which keeps all messages
 * until the method has returned, and sends them again then.
 *
 * A body with a lock can also await all of it, which Nest 12 would not end before the body has returned; and nothing is
 * read while the body runs without a subscription.
 */
export class LateStream extends Observable<unknown> {
  readonly #stream: RequestStream;
  readonly #call: Readable;
  readonly #subscribers = new Set<Subscriber<unknown>>();
  /** Whether a body waits for its lock. */
  #isHeldBack = false;
  /** How many bodies run, each called by the one before. */
  #bodies = 0;
  #wasSubscribed = false;
  /** Whether somebody listens to the call itself. */
  #isListenedTo = false;
  #hasReturned = false;
  #hasEnded = false;

  constructor(stream: RequestStream, call: Readable) {
    super((subscriber) => {
      // Messages come in the context of the connection, and what a body does for each is inside its lock.
      const reading = this.#stream.subscribe(observerIn(AsyncLocalStorage.snapshot(), subscriber));
      // Nest 11 does not complete the stream of a call that ends before its client has.
      const complete = () => subscriber.complete();
      if (call.destroyed) setImmediate(complete);
      else call.once('close', complete);
      this.#subscribers.add(subscriber);
      this.#wasSubscribed = true;
      if (this.#hasEnded && this.#isInBody) complete();
      else this.#read();
      return () => {
        call.off('close', complete);
        reading.unsubscribe();
        this.#subscribers.delete(subscriber);
        // Who subscribes next reads on.
        if (this.#isInBody && this.#subscribers.size === 0) call.pause();
      };
    });
    this.#stream = stream;
    this.#call = call;
    call.once('end', () => this.#ended());
    call.pause();
  }

  /** Whether the call has ended before its stream was read to the end: what the client has sent is gone, or a part. */
  get isGone(): boolean {
    return this.#call.destroyed && !(this.#wasSubscribed && this.#hasEnded);
  }

  /** Nest calls it when the method has returned. */
  drainBuffer(): void {
    this.#hasReturned = true;
    this.#read();
  }

  /** Stops the stream, because the method waits for its lock. */
  holdBack(): void {
    this.#isHeldBack = true;
    this.#call.pause();
  }

  /** The next one who subscribes is the body: who did before it, such as an interceptor, waits for it. */
  bodyRuns(): void {
    this.#isHeldBack = false;
    this.#bodies++;
  }

  /** @param ran whether the body has run: it does not without its lock */
  bodyReturned(ran: boolean): void {
    this.#isHeldBack = false;
    if (ran) this.#bodies--;
    // Otherwise whoever subscribes next reads it: the method has not returned, and may give it to another one.
    if (this.#subscribers.size > 0 || this.#hasReturned || this.#isListenedTo) this.#read();
  }

  /** Reads the call also if nobody subscribes: somebody listens to the call itself. */
  resume(): void {
    this.#isListenedTo = true;
    this.#read();
  }

  get #isInBody(): boolean {
    return !this.#isHeldBack && this.#bodies > 0;
  }

  #read(): void {
    if (this.#isHeldBack || !(this.#wasSubscribed || this.#isListenedTo)) return;
    if (!this.#hasReturned) return void this.#call.resume();
    // What comes now is behind what Nest has kept, and sends in a "setImmediate" of its own.
    this.#call.pause();
    this.#stream.drainBuffer();
    setImmediate(() => this.#isHeldBack || this.#call.resume());
  }

  #ended(): void {
    this.#hasEnded = true;
    if (this.#isInBody) for (const subscriber of this.#subscribers) subscriber.complete();
  }
}
