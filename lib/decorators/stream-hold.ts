import type { Lock } from '../core/lock.js';

/** The longest time that a timer can be set to, in ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/**
 * A lock that a stream keeps. If nobody has begun to read the stream when the lease would be over, the lock is given back: else it would
 * be renewed for ever.
 */
export class StreamHold {
  /** When the lock may be given back. Never rejects. */
  readonly ended: Promise<void>;
  readonly #lock: Lock;
  readonly #unread: NodeJS.Timeout;
  #resolve!: () => void;
  #hasEnded = false;

  constructor(lock: Lock) {
    this.#lock = lock;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    this.#unread = setTimeout(() => this.#resolve(), Math.min(lock.remaining(), LONGEST_TIMER_MS)).unref();
  }

  /** Whether it was read to its end. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @throws LockLostError when the lock was given back, or is lost and that matters */
  begin(onLost: 'throw' | 'ignore'): void {
    clearTimeout(this.#unread);
    if (onLost === 'throw' || !this.#lock.lost || this.#hasEnded) this.#lock.assertHeld();
  }

  /** Gives the lock back; settles when the key is free. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    clearTimeout(this.#unread);
    this.#resolve();
    await this.#lock.unlock();
  }
}
