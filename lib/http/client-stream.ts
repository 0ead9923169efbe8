import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable } from 'rxjs';
import { observerIn } from '../clock/observer-in.js';
import type { ClientMessages, Message, Reader } from './client-messages.js';

/**
 * What the client of a gRPC call streams, as its handler gets it, or a call of a method with a lock.
 *
 * A stream has a place among the messages: who subscribes gets those after it. The stream of a method begins at the
 * place of its caller's stream. Who has read a part and leaves moves the stream on, and its caller's. So methods that
 * read one after the other divide the messages, and of those that read beside each other each gets all.
 *
 * While the handler runs, who goes on reading takes nothing away: it may be an interceptor, which reads before the
 * handler does. When the handler has returned, a stream moves on with whoever reads it.
 */
export class ClientStream extends Observable<unknown> {
  readonly #messages: ClientMessages;
  readonly #outer: ClientStream | undefined;
  #at: Message;
  /** Where it stands when the handler has returned. */
  #first: Message | undefined;
  /** What a reader gets at this moment: a call that it makes now gets what comes after it. */
  #current: Message | undefined;
  #isListenedTo = false;
  /** Whether somebody reads the messages from the call itself. */
  #isReadElsewhere = false;

  /** @param outer the stream of the caller, for that of a call of a method with a lock */
  constructor(messages: ClientMessages, outer?: ClientStream) {
    super((subscriber) => {
      const observer = observerIn(AsyncLocalStorage.snapshot(), subscriber);
      const reader: Reader = {
        ...observer,
        at: this.#place,
        endsInHandler: outer !== undefined,
        next: (message) => {
          if (!messages.first) this.#moveTo(message);
          this.#current = message;
          observer.next(message.value);
          this.#current = undefined;
        },
      };
      messages.add(reader);
      return () => {
        this.#moveTo(reader.at);
        messages.delete(reader);
      };
    });
    this.#messages = messages;
    this.#outer = outer;
    this.#first = messages.first;
    this.#at = outer ? outer.#place : messages.last;
  }

  /** Whether the body must not run: its client has left, or what it has sent is gone. */
  get isGone(): boolean {
    return this.#messages.isGone || (this.#isOutermost && this.#messages.hasLeft);
  }

  /** Whether somebody has ever read the stream of the client. */
  get wasRead(): boolean {
    return this.#messages.wasRead;
  }

  /** Whether its caller's is that of the handler. */
  get #isOutermost(): boolean {
    return this.#outer !== undefined && this.#outer.#outer === undefined;
  }

  /** Makes the stream of a call of a method with a lock. */
  forCall(): ClientStream {
    return new ClientStream(this.#messages, this);
  }

  /** Somebody listens to the call itself: to its messages, or only to its end. So it is read, whoever subscribes. */
  listen(event: 'data' | 'readable' | 'end'): void {
    this.#isReadElsewhere ||= event !== 'end';
    if (this.#isListenedTo) return;
    this.#isListenedTo = true;
    const leave = () => this.#messages.delete(reader);
    const reader: Reader = {
      at: this.#place,
      endsInHandler: false,
      next: (message) => this.#isReadElsewhere && !this.#messages.first && this.#moveTo(message),
      error: leave,
      complete: leave,
    };
    this.#messages.add(reader);
  }

  /** Nest calls it when the handler has returned. */
  drainBuffer(): void {
    this.#messages.sendAgain();
  }

  /** Where a reader begins, and the stream of a call. */
  get #place(): Message {
    return this.#current ? later(this.#current, this.#last) : this.#last;
  }

  /** The last message that counts as read. */
  get #last(): Message {
    if (this.#first && !this.#messages.first) {
      this.#at = this.#first;
      this.#first = undefined;
    }
    return this.#at;
  }

  #moveTo(message: Message): void {
    this.#at = later(message, this.#last);
    if (this.#outer) this.#outer.#moveTo(message);
  }
}

const later = (one: Message, other: Message): Message => (one.number > other.number ? one : other);
