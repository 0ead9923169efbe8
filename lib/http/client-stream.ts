import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable } from 'rxjs';
import { observerIn } from '../clock/observer-in.js';
import type { ClientMessages, Message, Reader } from './client-messages.js';

/**
 * What the client of a gRPC call streams, as its handler gets it, or a call of a method with a lock.
 *
 * A stream has a place among the messages: who subscribes gets those after it. The stream of a method begins at the
 * place of its caller's stream. When somebody reads it, it moves on, and so does its caller's. So methods that read one
 * after the other divide the messages, and of those that read beside each other each gets all.
 */
export class ClientStream extends Observable<unknown> {
  readonly #messages: ClientMessages;
  readonly #outer: ClientStream | undefined;
  /** The last message that was read. */
  #at: Message;
  /** Where it stands when the handler has returned. */
  #first: Message | undefined;
  #readers = 0;
  #wasRead = false;

  /** @param outer the stream of the caller, for that of a call of a method with a lock */
  constructor(messages: ClientMessages, outer?: ClientStream) {
    super((subscriber) => {
      const reader: Reader = {
        at: this.#place,
        observer: observerIn(AsyncLocalStorage.snapshot(), subscriber),
        endsInHandler: outer !== undefined,
        moveTo: (message) => this.#read(message),
      };
      this.#readers++;
      messages.add(reader);
      return () => {
        this.#readers--;
        messages.delete(reader);
      };
    });
    this.#messages = messages;
    this.#outer = outer;
    this.#first = messages.first;
    this.#at = outer ? outer.#place : messages.last;
    if (!outer) this.run();
  }

  /** Whether the body must not run: its client has left, or what it has sent is gone. */
  get isGone(): boolean {
    return this.#messages.isGone || (this.#isOutermost && this.#messages.hasLeft);
  }

  /** Whether its caller's is that of the handler. */
  get #isOutermost(): boolean {
    return this.#outer !== undefined && this.#outer.#outer === undefined;
  }

  /** Makes the stream of a call of a method with a lock. */
  forCall(): ClientStream {
    return new ClientStream(this.#messages, this);
  }

  /** The body runs, and might listen to the call itself. */
  run(): void {
    this.#messages.running.add(this);
  }

  /** The call has ended. */
  close(): void {
    this.#messages.running.delete(this);
  }

  /** A message has come that somebody gets from the call itself: as from Nest, who reads only later does not get it. */
  passOver(message: Message): void {
    if (this.#readers === 0 && !(this.#outer && this.#wasRead)) this.#moveTo(message);
  }

  /** Nest calls it when the handler has returned. */
  drainBuffer(): void {
    this.#messages.sendAgain();
  }

  #moveTo(message: Message): void {
    if (message.number > this.#place.number) this.#at = message;
  }

  #read(message: Message): void {
    this.#wasRead = true;
    this.#moveTo(message);
    if (this.#outer) this.#outer.#read(message);
  }

  get #place(): Message {
    if (this.#first && !this.#messages.first) {
      this.#at = this.#first;
      this.#first = undefined;
    }
    return this.#at;
  }
}
