import { isObservable, Observable } from 'rxjs';
import type { Readable } from 'node:stream';

/** What the client of a gRPC call streams, as Nest gives it to a method with `@GrpcStreamMethod`. */
interface RequestStream extends Observable<unknown> {
  /** Makes Nest send what it has received so far, in the next turn of the event loop. It calls that itself, too. */
  drainBuffer(): void;
}

export function isRequestStream(value: unknown): value is RequestStream {
  return isObservable(value) && typeof (value as Partial<RequestStream>).drainBuffer === 'function';
}

/**
 * The stream of a call that is read late: only when somebody has subscribed, and the method has returned, as in Nest,
 * or a body with a lock runs. So nothing is lost or kept in memory before.
 */
export class LateStream extends Observable<unknown> {
  readonly #stream: RequestStream;
  readonly #call: Readable;
  #isAwaited = false;
  #mayBegin = false;
  #hasBegun = false;

  constructor(stream: RequestStream, call: Readable) {
    super((subscriber) => {
      const reading = this.#stream.subscribe(subscriber);
      // Nest 11 does not complete the stream of a call that ends before its client has.
      const complete = () => subscriber.complete();
      if (call.destroyed) setImmediate(complete);
      else call.once('close', complete);
      this.#isAwaited = true;
      if (this.#mayBegin) this.#begin();
      return () => {
        call.off('close', complete);
        reading.unsubscribe();
      };
    });
    this.#stream = stream;
    this.#call = call;
    call.pause();
  }

  /** Whether the call has ended before anybody read its stream: what the client has sent is gone. */
  get isGone(): boolean {
    return this.#call.destroyed && !this.#isAwaited;
  }

  /** Nest calls it when the method has returned. */
  drainBuffer(): void {
    this.bodyRuns();
    if (this.#isAwaited) this.#begin();
  }

  /** The next one who subscribes is the body: who did before it, such as an interceptor, waits for it. */
  bodyRuns(): void {
    this.#mayBegin = true;
  }

  /** Reads the call also if nobody subscribes: somebody listens to the call itself. */
  resume(): void {
    if (!this.#hasBegun) this.#call.resume();
  }

  #begin(): void {
    if (this.#hasBegun) return;
    this.#hasBegun = true;
    this.#stream.drainBuffer();
    // Behind what Nest has received before: it sends that in a "setImmediate" of its own.
    setImmediate(() => this.#call.resume());
  }
}
