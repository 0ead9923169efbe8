import type { Lock, LockOptions } from 'nest-redis-lock';
import type { Backing } from '../../store/backing.js';
import type { ClosableLockService } from '../stores/lock-services.js';

/** Callers that queue for a key in the store, one after the other. */
export class Line {
  /** The names of those who got in, in that order. */
  readonly entered: string[] = [];
  readonly #backing: Backing;
  readonly #key: string;
  #length = 0;

  constructor(backing: Backing, key: string) {
    this.#backing = backing;
    this.#key = key;
  }

  /**
   * Resolves when the caller stands in the queue, and `lock` when it got in. All have to join before the first leaves.
   */
  async join(who: ClosableLockService, options: LockOptions, name: string): Promise<{ readonly lock: Promise<Lock> }> {
    const lock = who.lock(this.#key, options).then((lock) => {
      this.entered.push(name);
      return lock;
    });
    lock.catch(() => undefined);
    await this.#backing.waiters(this.#key, ++this.#length);
    return { lock };
  }
}
