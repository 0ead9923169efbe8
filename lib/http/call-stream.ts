import { Observable, type Subscriber } from 'rxjs';
import { Readers } from './readers.js';

/** The stream of which a call gets one of its own. */
export interface SharedStream {
  /** Whether nothing more comes. */
  readonly isOver: boolean;
  /** Whether the handler has not returned: what is read is sent again then. */
  readonly isInHandler: boolean;
  /** Whether the client's call has ended, for whatever reason. */
  readonly isDestroyed: boolean;
  /** Whether somebody listens to the client's call itself. */
  readonly isListenedTo: boolean;
  /** Whether the client has cancelled its call. */
  readonly hasLeft: boolean;
  /** Whether its call has ended before its stream was read to the end: what the client has sent is gone, or a part. */
  readonly isGone: boolean;
  add(stream: CallStream): CallStream;
  delete(stream: CallStream): void;
  /** Somebody has subscribed. */
  readsOn(): void;
  /** Reads what comes, or pauses. */
  regulate(): void;
  drainBuffer(): void;
}

/**
 * What the client of a gRPC call streams, as one call of a method with a lock gets it: from that call on. What others
 * read until its body subscribes, as while it waits for its lock, is kept for it.
 */
export class CallStream extends Observable<unknown> {
  readonly readers = new Readers();
  readonly #shared: SharedStream;
  /** The stream of the call whose body makes this call. */
  readonly #outer: CallStream | undefined;
  /** The stream of the last call that its body has made. */
  #inner: CallStream | undefined;
  /** What others have read, and this call has not. */
  #unread: unknown[];
  /** The call around it, when that keeps what is unread. */
  #keptBy: CallStream | undefined;
  #hasBegun = false;
  #isRunning = false;
  #isOpen = true;
  #endedInHandler = false;

  /** @param outer the stream of the call whose body makes this one, if that has a lock, too */
  constructor(shared: SharedStream, unread: unknown[], outer?: CallStream) {
    super((subscriber) => {
      this.#hasBegun = true;
      const leave = this.readers.add(subscriber);
      this.#shared.add(this);
      this.#catchUp(subscriber);
      if (subscriber.closed) return this.#left(leave);
      if (this.#shared.isOver) subscriber.complete();
      else if (this.#shared.isDestroyed) setImmediate(() => subscriber.complete());
      else this.#shared.readsOn();
      return () => this.#left(leave);
    });
    this.#shared = shared;
    this.#unread = unread;
    this.#outer = outer;
  }

  /** Whether the call has not ended. */
  get isOpen(): boolean {
    return this.#isOpen;
  }

  get isRead(): boolean {
    return this.readers.size > 0;
  }

  /** Whether the body must not run: its client has left, or what it has sent is gone. */
  get isGone(): boolean {
    return this.#shared.isGone || (!this.#outer && this.#shared.hasLeft);
  }

  /** Makes the stream of a call of another method with a lock, which reads on. */
  forCall(): CallStream {
    this.#hasBegun = true;
    return this.#shared.add((this.#inner = new CallStream(this.#shared, this.#takeUnread(), this)));
  }

  /** Nest calls it when the handler has returned. */
  drainBuffer(): void {
    this.#shared.drainBuffer();
  }

  next(message: unknown): void {
    if (this.isRead) {
      this.forget();
      return this.readers.next(message);
    }
    const isLeftToOthers = this.#isRunning && this.#shared.isListenedTo;
    if (this.#unread.length > 0 || !(this.#hasBegun || isLeftToOthers)) this.#unread.push(message);
  }

  /** Forgets what is unread: it is sent again, or a reader of this call has it. */
  forget(): void {
    this.#unread = [];
  }

  /** The body runs. */
  run(): void {
    this.#isRunning = true;
  }

  /** The call has ended. What it has not read is the next that the call around it reads. */
  close(): void {
    const outer = this.#outer;
    if (outer && outer.#inner === this) {
      outer.#keeper.#putBack(this.#unread.splice(0));
      this.#keptBy = outer;
    }
    this.#isOpen = false;
    this.#endedInHandler = this.#shared.isInHandler;
    if (!this.isRead) this.#shared.delete(this);
  }

  get #keeper(): CallStream {
    return this.#keptBy ? this.#keptBy.#keeper : this;
  }

  #catchUp(subscriber: Subscriber<unknown>): void {
    const unread = this.#takeUnread();
    let read = 0;
    while (read < unread.length && !subscriber.closed) subscriber.next(unread[read++]);
    this.#keeper.#putBack(unread.slice(read));
  }

  #putBack(unread: readonly unknown[]): void {
    this.#unread = unread.concat(this.#unread);
  }

  #takeUnread(): unknown[] {
    const keeper = this.#keeper;
    if (keeper.#endedInHandler && !this.#shared.isInHandler) keeper.forget();
    return keeper.#unread.splice(0);
  }

  #left(leave: () => void): void {
    leave();
    if (this.#isOpen) this.#shared.regulate();
    else if (!this.isRead) this.#shared.delete(this);
  }
}
