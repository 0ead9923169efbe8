import { now } from '../clock/deadline.js';
import { atRoot } from '../clock/root-context.js';
import { ALIVE_MS, type Cancellation } from '../store/lock-store.js';

const FIRST_RETRY_MS = 500;

interface Orphan {
  /** When its lease is over, and its time in the queue: Redis has dropped it by itself then. */
  readonly until: number;
  tryAt: number;
  delayMs: number;
  /** How many commands may have taken it, or may still take it. */
  copies: number;
}

/**
 * Locks that Redis may or may not hold for us: a command was sent and its answer never came. Each is released by its token
 * as soon as Redis answers again, and then ever more rarely until Redis drops it by itself: a command that was lost on a slow
 * connection can still arrive.
 */
export class Orphans {
  readonly #release: (lock: Cancellation) => Promise<number>;
  readonly #orphans = new Map<Cancellation, Orphan>();
  #timer: NodeJS.Timeout | undefined;
  #trying = false;
  #isClosed = false;

  constructor(release: (lock: Cancellation) => Promise<number>) {
    this.#release = release;
  }

  /** @param copies how many commands may have taken it, or may still arrive and take it */
  add(lock: Cancellation, copies: number): void {
    // The end of a store fails the commands that are under way.
    if (this.#isClosed) return;
    this.#orphans.set(lock, { until: now() + Math.max(lock.leaseMs, ALIVE_MS), tryAt: now() + FIRST_RETRY_MS, delayMs: FIRST_RETRY_MS, copies });
    this.#tryLater();
  }

  /** Releases them all now, because Redis can be reached again. */
  async reconnected(): Promise<void> {
    await this.#tryAll([...this.#orphans.keys()]);
  }

  /** Tries each once more, and gives up. */
  async close(): Promise<void> {
    this.#isClosed = true;
    clearTimeout(this.#timer);
    const left = [...this.#orphans.keys()];
    this.#orphans.clear();
    await Promise.all(left.map((lock) => this.#release(lock).catch(() => 0)));
  }

  async #tryAll(locks: readonly Cancellation[]): Promise<void> {
    if (this.#trying) return;
    this.#trying = true;
    await Promise.all(locks.map((lock) => this.#tryOne(lock)));
    this.#trying = false;
    this.#tryLater();
  }

  async #tryOne(lock: Cancellation): Promise<void> {
    const orphan = this.#orphans.get(lock);
    if (!orphan) return;
    const isOver = now() >= orphan.until;
    const freed = isOver ? 0 : await this.#release(lock).catch(() => 0);
    if (isOver || (freed > 0 && --orphan.copies <= 0)) return void this.#orphans.delete(lock);
    orphan.tryAt = now() + orphan.delayMs;
    orphan.delayMs *= 2;
  }

  #tryLater(): void {
    if (this.#orphans.size === 0 || this.#timer) return;
    this.#timer = atRoot(() => setTimeout(() => this.#tryDue(), FIRST_RETRY_MS).unref());
  }

  #tryDue(): void {
    this.#timer = undefined;
    const due = [...this.#orphans].filter(([, { tryAt, until }]) => Math.min(tryAt, until) <= now());
    void this.#tryAll(due.map(([lock]) => lock));
  }
}
