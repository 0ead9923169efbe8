import type { Readable } from 'node:stream';
import { isObservable, type Observable } from 'rxjs';
import { nextTick } from '../clock/next-tick.js';
import { hasClientLeft } from './answered-call.js';
import { CallFlow } from './call-flow.js';

/** What the client of a gRPC call streams, as Nest gives it to a method with `@GrpcStreamMethod`. */
export interface RequestStream extends Observable<unknown> {
  /** Makes Nest send what it has received so far, in the next turn of the event loop, and keep no more. */
  drainBuffer(): void;
}

/** The call as Node reads it. */
export type CallReader = Readable & { readonly cancelled: boolean };

/** A message, and those after it. It stays in memory as long as somebody stands before it. */
export interface Message {
  readonly number: number;
  readonly value?: unknown;
  next?: Message;
}

/** Somebody who has subscribed. */
export interface Reader {
  /** The last message it has got. */
  at: Message;
  readonly next: (message: Message) => unknown;
  readonly error: (reason: unknown) => void;
  readonly complete: () => void;
  /** Whether it hears of the end while the handler runs, which may await it. */
  readonly endsInHandler: boolean;
}

export function isRequestStream(value: unknown): value is RequestStream {
  return isObservable(value) && typeof (value as Partial<RequestStream>).drainBuffer === 'function';
}

/**
 * What the client of one call streams. The call is read only while somebody reads. So nothing is lost while a method
 * waits for its lock, and the client waits, too.
 *
 * When the handler has returned, all that was read is sent again, as by Nest 12: somebody may have subscribed too late
 * for it. (Nest 11 sends nothing again if the client has ended its stream by then.)
 */
export class ClientMessages {
  readonly #call: CallReader;
  readonly #flow: CallFlow;
  readonly #readers = new Set<Reader>();
  /** The place before all messages, which are sent again. Nobody needs it when the handler has returned. */
  #first: Message | undefined;
  #last: Message;
  /** How many turns of the event loop must come before something is read or sent. */
  #holds = 0;
  #isSending = false;
  #wasRead = false;
  /** Whether nothing more comes from the client; and whether it did not leave in the middle. */
  #hasEnded = false;
  #isWhole = false;
  #isClosed = false;
  #failure: { readonly reason: unknown } | undefined;

  constructor(stream: RequestStream, call: CallReader) {
    this.#call = call;
    this.#last = this.#first = { number: 0 };
    this.#flow = new CallFlow(call);
    this.#flow.pause();
    const closed = () => {
      this.#isClosed = true;
      this.#send();
    };
    const failed = (reason: unknown) => {
      this.#failure ??= { reason };
      this.#send();
    };
    stream.subscribe({ next: (value) => this.#received(value), error: failed });
    // What came before is sent now, before anything else is read.
    stream.drainBuffer();
    this.#hold();
    const ended = () => {
      this.#hasEnded = true;
      this.#isWhole = !hasClientLeft(call);
      this.#send();
    };
    // That a client has left in the middle is known two turns of the event loop later: `call.cancelled`.
    const mayHaveEnded = () => setImmediate(() => setImmediate(ended));
    if (call.readableEnded) mayHaveEnded();
    else call.once('end', mayHaveEnded);
    // Nest does not pass on how a handler fails when the client has ended its stream before.
    call.on('error', (reason) => call.cancelled || failed(reason));
    // Before Nest hears it, and leaves what the handler has returned.
    call.once('cancelled', closed);
    // Nest 11 does not complete the stream of a call that ends before its client has.
    call.once('close', closed);
  }

  /** The place before all messages, while the handler runs. */
  get first(): Message | undefined {
    return this.#first;
  }

  get last(): Message {
    return this.#last;
  }

  /** Whether somebody has ever read. */
  get wasRead(): boolean {
    return this.#wasRead;
  }

  /** Whether the client has left before it had its answer. */
  get hasLeft(): boolean {
    return hasClientLeft(this.#call);
  }

  /** Whether the call has ended before all was read: what the client has sent is gone, or a part. */
  get isGone(): boolean {
    return this.#call.destroyed && !this.#isWhole;
  }

  add(reader: Reader): void {
    this.#wasRead = true;
    this.#readers.add(reader);
    // In the next tick, as from the call: to all that have subscribed by then.
    nextTick(() => this.#send());
    this.#readOrPause();
  }

  delete(reader: Reader): void {
    this.#readers.delete(reader);
    this.#readOrPause();
  }

  /** The handler has returned. */
  sendAgain(): void {
    if (!this.#first) return;
    for (const reader of this.#readers) reader.at = this.#first;
    this.#first = undefined;
    this.#hold();
  }

  #hold(): void {
    this.#holds++;
    setImmediate(() => {
      this.#holds--;
      this.#send();
      this.#readOrPause();
    });
  }

  #readOrPause(): void {
    if (this.#holds > 0) return;
    if (this.#readers.size > 0) this.#flow.resume();
    else this.#flow.pause();
  }

  #received(value: unknown): void {
    this.#last = this.#last.next = { number: this.#last.number + 1, value };
    this.#send();
  }

  /** Sends all that somebody has not got, in the order in which it came. */
  #send(): void {
    if (this.#isSending) return;
    this.#isSending = true;
    for (let message = this.#nextOne; message; message = this.#nextOne)
      for (const reader of [...this.#readers])
        if (reader.at.next === message && this.#readers.has(reader)) {
          reader.at = message;
          reader.next(message);
        }
    this.#isSending = false;
    for (const reader of [...this.#readers]) this.#endIfOver(reader);
  }

  /** The earliest message that somebody has not got, if it may be sent now. */
  get #nextOne(): Message | undefined {
    if (this.#holds > 0) return undefined;
    let earliest: Message | undefined;
    for (const { at } of this.#readers)
      if (at.next && (!earliest || at.next.number < earliest.number)) earliest = at.next;
    return earliest;
  }

  #endIfOver(reader: Reader): void {
    // What a reader does at the end may make others leave, or something be sent again.
    if (this.#holds > 0 || reader.at.next || !this.#readers.has(reader)) return;
    if (this.#failure) reader.error(this.#failure.reason);
    else if (this.#isClosed || this.#call.destroyed || (this.#hasEnded && (!this.#first || reader.endsInHandler)))
      reader.complete();
  }
}
