import type { ServerResponse } from 'node:http';
import { finished } from 'node:stream';
import { HttpException } from '@nestjs/common';
import type { Lock } from '../core/lock.js';

/** A lock that an HTTP request holds: until the response has been sent, or its client has gone, and nothing works for it any more. */
export class RequestHold {
  /** The handler it is for. */
  readonly site: object;
  readonly lock: Lock;
  /** The lock of the same request that was taken before. */
  readonly outer: RequestHold | undefined;
  /** When the lock may be given back. Never rejects. */
  readonly ended: Promise<void>;
  #resolve!: () => void;
  #working = 0;
  #isAnswered = false;
  #isOver = false;

  constructor(site: object, lock: Lock, response: ServerResponse, outer: RequestHold | undefined) {
    this.site = site;
    this.lock = lock;
    this.outer = outer;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    finished(response, () => {
      this.#isAnswered = true;
      this.#look();
    });
  }

  /** Whether the lock is still held, and nothing works for the request just now. */
  get isIdle(): boolean {
    return this.lock.isHeld && this.#working === 0 && !this.#isOver;
  }

  /** This one, or the one around it that is for that handler. */
  of(site: object): RequestHold | undefined {
    return this.site === site ? this : this.outer?.of(site);
  }

  /** Something begins to work for the request; returns what says that it has ended. */
  enter(): () => void {
    if (this.#isOver) throw new HttpException('The client went away before its request was handled.', 499);
    this.#working++;
    let left = false;
    return () => {
      if (left) return;
      left = true;
      this.#working--;
      this.#look();
    };
  }

  #look(): void {
    if (!this.#isAnswered || this.#working > 0) return;
    this.#isOver = true;
    this.#resolve();
  }
}
