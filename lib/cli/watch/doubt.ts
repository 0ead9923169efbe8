import type { ListedHolder, ListedLock, LockList } from '../../core/lock-list.js';
import type { Look, SeenKey } from './look.js';

/** Knows of what a look says nothing. */
export class Doubt {
  /** Whether processes may be missing as such, or locks. */
  readonly #isPartial: boolean;
  readonly #silent: ReadonlySet<string | undefined>;
  readonly #live: Look['live'];

  constructor({ locks, total, unreached }: LockList, live: Look['live']) {
    this.#isPartial = total > locks.length || unreached.some(({ what }) => what === 'server');
    this.#silent = new Set(unreached.map(({ instance }) => instance));
    this.#live = live;
  }

  /** Whether a holder that is not listed may hold its lock all the same. */
  isUnsure(holder: ListedHolder): boolean {
    const { instance, heldMs } = holder;
    if (this.#isPartial || heldMs === undefined || instance === undefined) return true;
    return this.#silent.has(instance) || !this.#live?.has(instance);
  }

  /** Whether the process of a holder has ended. */
  isDead({ instance }: ListedHolder): boolean {
    return !this.#isPartial && instance !== undefined && this.#live?.has(instance) === false;
  }

  /** Adds the waiters of those that did not answer. */
  waitersOf(lock: ListedLock, before: SeenKey | undefined): Pick<SeenKey, 'waiters' | 'waiterCount'> {
    if (!before) return lock;
    if (this.#isPartial && lock.waiterCount < before.waiterCount) return before;
    const silent = before.waiters.filter(({ instance }) => this.#silent.has(instance));
    const count = silent.reduce((sum, { callers }) => sum + callers, 0);
    return { waiters: [...lock.waiters, ...silent], waiterCount: lock.waiterCount + count };
  }
}
