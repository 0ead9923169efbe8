import type { Readable } from 'node:stream';
import { isObservable, Observable } from 'rxjs';
import { CallStream, type SharedStream } from './call-stream.js';
import { Readers } from './readers.js';

/** What the client of a gRPC call streams, as Nest gives it to a method with `@GrpcStreamMethod`. */
interface RequestStream extends Observable<unknown> {
  /** Makes Nest send what it has received so far, in the next turn of the event loop, and keep no more. */
  drainBuffer(): void;
}

/** The call as Node reads it. */
type CallReader = Readable & { readonly cancelled: boolean };

export function isRequestStream(value: unknown): value is RequestStream {
  return isObservable(value) && typeof (value as Partial<RequestStream>).drainBuffer === 'function';
}

/**
 * The stream of a call that is read late: from the first subscription on. So while a method waits for its lock, nothing
 * is lost or kept in memory, unless somebody else reads it. Each call of a method with a lock gets a stream of its own.
 *
 * Otherwise it does as the stream of Nest 12 does, which keeps all messages until the handler has returned, and sends
 * them again then. (Nest 11 forgets them if the client has ended its stream by then.)
 */
export class LateStream extends Observable<unknown> implements SharedStream {
  readonly #call: CallReader;
  readonly #readers = new Readers();
  readonly #streams = new Set<CallStream>();
  /** What was read before the handler returned, and has not been sent since. */
  #kept: unknown[] = [];
  #handler: 'runs' | 'has just returned' | 'has returned' = 'runs';
  #wasSubscribed = false;
  /** Whether somebody listens to the call itself. */
  #isListenedTo = false;
  /** Whether the client has ended it, and whether all that it sent has been sent on since the handler returned. */
  #hasEnded = false;
  #isComplete = false;

  constructor(stream: RequestStream, call: CallReader) {
    super((subscriber) => {
      if (this.#isComplete) return subscriber.complete();
      const reader = this.#readers.add(subscriber);
      if (call.destroyed) setImmediate(() => subscriber.complete());
      this.readsOn();
      return () => {
        this.#readers.delete(reader);
        this.regulate();
      };
    });
    this.#call = call;
    call.pause();
    const complete = () => [this.#readers, ...this.#streams].forEach((one) => one.complete());
    stream.subscribe({
      next: (message) => this.#received(message),
      error: (reason) => [this.#readers, ...this.#streams].forEach((one) => one.error(reason)),
      complete: () => call.cancelled && complete(),
    });
    // It sends what came before, and keeps nothing from now on.
    stream.drainBuffer();
    const ended = () => this.#ended();
    if (call.readableEnded) setImmediate(ended);
    else call.once('end', ended);
    // Nest 11 does not complete the stream of a call that ends before its client has.
    call.once('close', complete);
  }

  get isOver(): boolean {
    return this.#isComplete || (this.#hasEnded && this.isInHandler);
  }

  get isInHandler(): boolean {
    return this.#handler === 'runs';
  }

  get isDestroyed(): boolean {
    return this.#call.destroyed;
  }

  get isListenedTo(): boolean {
    return this.#isListenedTo;
  }

  get hasLeft(): boolean {
    return this.#call.cancelled;
  }

  get isGone(): boolean {
    return this.#call.destroyed && !(this.#wasSubscribed && this.#hasEnded);
  }

  /** Makes the stream that a call of a method with a lock gets. */
  forCall(): CallStream {
    // Nobody has had what came before the first subscription.
    const isUnread = this.#handler === 'runs' && !this.#wasSubscribed;
    return this.add(new CallStream(this, isUnread ? [...this.#kept] : []));
  }

  add(stream: CallStream): CallStream {
    this.#streams.add(stream);
    this.regulate();
    return stream;
  }

  delete(stream: CallStream): void {
    this.#streams.delete(stream);
    this.regulate();
  }

  /** Nest calls it when the handler has returned. */
  drainBuffer(): void {
    if (this.#handler !== 'runs') return;
    this.#handler = 'has just returned';
    this.#call.pause();
    for (const stream of this.#streams) stream.forget();
    setImmediate(() => {
      this.#handler = 'has returned';
      this.#sendKept();
    });
  }

  /** Reads the call also if nobody subscribes: somebody listens to the call itself. */
  resume(): void {
    this.#isListenedTo = true;
    this.regulate();
  }

  readsOn(): void {
    this.#wasSubscribed = true;
    this.regulate();
  }

  /**
   * Reads the call, or pauses it: before the first subscription; and while nobody reads it, when the handler has
   * returned or a method with a lock has it. Who subscribes next reads on.
   */
  regulate(): void {
    if (this.#handler === 'has just returned' || !(this.#wasSubscribed || this.#isListenedTo)) return;
    if (this.#isRead) {
      // When the one who reads on has subscribed.
      if (this.#isBehind) setImmediate(() => this.#sendKept());
      else this.#call.resume();
    } else if (this.#handler === 'has returned' || [...this.#streams].some(({ isOpen }) => isOpen)) this.#call.pause();
  }

  get #isRead(): boolean {
    return this.#isListenedTo || this.#readers.size > 0 || [...this.#streams].some(({ isRead }) => isRead);
  }

  /** Whether something must be sent before what comes. */
  get #isBehind(): boolean {
    return this.#handler === 'has returned' && this.#kept.length > 0;
  }

  #received(message: unknown): void {
    if (this.#handler !== 'has returned' || this.#isBehind) this.#kept.push(message);
    if (this.#handler !== 'has just returned' && !this.#isBehind) this.#send(message);
  }

  /** Stops at the message after which nobody reads: the next one reads on there. */
  #sendKept(): void {
    let sent = 0;
    while (sent < this.#kept.length && this.#isRead) this.#send(this.#kept[sent++]);
    this.#kept = this.#kept.slice(sent);
    if (this.#isBehind) return;
    if (this.#hasEnded) this.#ended();
    this.regulate();
  }

  #send(message: unknown): void {
    // A call that a reader makes now gets what comes after this message.
    const streams = [...this.#streams];
    this.#readers.next(message);
    for (const stream of streams) stream.next(message);
  }

  #ended(): void {
    this.#hasEnded = true;
    if (this.#handler === 'has just returned' || this.#isBehind) return;
    if (this.#handler === 'has returned') {
      this.#isComplete = true;
      this.#readers.complete();
    }
    // Nest would not end the stream before the handler has returned, which may await it.
    for (const stream of this.#streams) stream.complete();
  }
}
