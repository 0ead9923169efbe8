import { Observable } from 'rxjs';
import { nextTick } from '../clock/next-tick.js';
import { type Reader, Readers } from './readers.js';

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
  readonly #readers = new Readers();
  /** Those who get what is unread before they get what comes. */
  readonly #behind = new Readers();
  readonly #shared: SharedStream;
  /** The stream of the call whose body makes this call. */
  readonly #outer: CallStream | undefined;
  /** The stream of the last call that its body has made. */
  #inner: CallStream | undefined;
  /** What others have read, and this call has not. */
  #unread: unknown[];
  /** How many of them those who are behind have got. */
  #sent = 0;
  #hasBegun = false;
  #isRunning = false;
  #isOpen = true;
  #endedInHandler = false;

  /** @param outer the stream of the call whose body makes this one, if that has a lock, too */
  constructor(shared: SharedStream, unread: unknown[], outer?: CallStream) {
    super((subscriber) => {
      this.#hasBegun = true;
      this.#takeBack();
      const isBehind = this.#unread.length > 0;
      const reader = (isBehind ? this.#behind : this.#readers).add(subscriber);
      this.#shared.add(this);
      // As the call itself, in the next tick: to all that have subscribed by then.
      if (isBehind) nextTick(() => this.#catchUp());
      else this.#readOn();
      return () => this.#left(reader);
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
    return this.#readers.size + this.#behind.size > 0;
  }

  /** Whether the body must not run: its client has left, or what it has sent is gone. */
  get isGone(): boolean {
    return this.#shared.isGone || (!this.#outer && this.#shared.hasLeft);
  }

  /** Makes the stream of a call of another method with a lock, which reads on. */
  forCall(): CallStream {
    this.#hasBegun = true;
    this.#takeBack();
    const unread = this.#unread.slice(this.#sent);
    if (this.#behind.size === 0) this.forget();
    return this.#shared.add((this.#inner = new CallStream(this.#shared, unread, this)));
  }

  /** Nest calls it when the handler has returned. */
  drainBuffer(): void {
    this.#shared.drainBuffer();
  }

  next(message: unknown): void {
    const isLeftToOthers = this.#isRunning && this.#shared.isListenedTo;
    const isNext = this.#unread.length > 0 || !(this.#hasBegun || isLeftToOthers);
    if (this.#behind.size > 0 || (!this.isRead && isNext)) this.#unread.push(message);
    this.#readers.next(message);
  }

  error(reason: unknown): void {
    for (const readers of [this.#readers, this.#behind]) readers.error(reason);
  }

  /** Nothing more comes. Those who are behind hear it when they have got what is unread. */
  complete(): void {
    this.#readers.complete();
  }

  /** Forgets what is unread: it is sent again, or somebody else has it. */
  forget(): void {
    this.#unread = [];
    this.#sent = 0;
  }

  /** The body runs. */
  run(): void {
    this.#isRunning = true;
  }

  /** The call has ended. */
  close(): void {
    this.#isOpen = false;
    this.#endedInHandler = this.#shared.isInHandler;
    if (!this.isRead) this.#handOver();
  }

  #catchUp(): void {
    while (this.#sent < this.#unread.length && this.#behind.size > 0) this.#behind.next(this.#unread[this.#sent++]);
    if (this.#behind.size > 0 || this.#readers.size > 0) this.forget();
    else {
      this.#unread = this.#unread.slice(this.#sent);
      this.#sent = 0;
    }
    if (this.#behind.size === 0) return;
    this.#readers.takeOver(this.#behind);
    this.#readOn();
  }

  #readOn(): void {
    if (this.#shared.isOver) this.#readers.complete();
    else if (this.#shared.isDestroyed) setImmediate(() => this.#readers.complete());
    else this.#shared.readsOn();
  }

  #left(reader: Reader): void {
    this.#readers.delete(reader);
    this.#behind.delete(reader);
    if (this.#isOpen) this.#shared.regulate();
    else if (!this.isRead) this.#handOver();
  }

  /** What it has not read is the next that the call around it reads, if this was its last one. */
  #handOver(): void {
    const outer = this.#outer;
    if (outer?.isRead === false && outer.#inner === this) {
      outer.#putBack(this.#unread.slice(this.#sent));
      this.forget();
    }
    this.#shared.delete(this);
  }

  #putBack(unread: readonly unknown[]): void {
    this.#unread = unread.concat(this.#unread);
    if (!this.#isOpen) this.#handOver();
  }

  /** Who subscribes to it when its call has ended gets what it has handed over. */
  #takeBack(): void {
    if (this.#isOpen || this.isRead) return;
    if (this.#endedInHandler && !this.#shared.isInHandler) this.forget();
    const outer = this.#outer;
    if (outer?.isRead !== false || outer.#inner !== this) return;
    outer.#takeBack();
    this.#unread = outer.#unread;
    outer.forget();
  }
}
