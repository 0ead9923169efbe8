import type { Lock } from '../../core/lock/lock.js';

/** The longest time that a timer can be set to, in ms. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;

/** How long a reader may take to come: the lease that was asked for. A lock that was handed over lasts less at first, and is renewed soon. */
const readerMs = (lock: Lock): number => (lock.isHeld ? Math.min(...lock.leases.map(({ leaseMs }) => leaseMs)) : 0);

/**
 * Asks the clock, so that a loss that no timer has told of yet is known.
 * A lock that its owner has given back is not lost.
 *
 * @throws LockLostError
 */
export function assertNotLost(lock: Lock): void {
  if (!lock.isHeld && lock.lost) throw lock.lost;
}

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
  /** Whether the stream has given its lock back. A method that did so before wants its stream to be read without the lock. */
  #gaveBack = false;

  constructor(lock: Lock) {
    this.#lock = lock;
    this.ended = new Promise((resolve) => (this.#resolve = resolve));
    this.#unread = setTimeout(() => this.#giveBack(), Math.min(readerMs(lock), LONGEST_TIMER_MS)).unref();
  }

  /** Whether it was read to its end. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** @throws LockLostError when the stream has given the lock back, or it is lost and that matters */
  begin(onLost: 'throw' | 'ignore'): void {
    clearTimeout(this.#unread);
    if (this.#gaveBack || (this.#hasEnded && this.#lock.lost)) this.#lock.assertHeld();
    else if (onLost === 'throw') assertNotLost(this.#lock);
  }

  /** Gives the lock back; settles when the key is free. */
  async end(): Promise<void> {
    this.#hasEnded = true;
    clearTimeout(this.#unread);
    this.#giveBack();
    await this.#lock.unlock();
  }

  #giveBack(): void {
    this.#gaveBack ||= this.#lock.isHeld;
    this.#resolve();
  }
}
