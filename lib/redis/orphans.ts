import { now } from '../clock/deadline.js';
import type { Renewal } from '../store/lock-store.js';

const RETRY_MS = 500;

/**
 * Locks that Redis may or may not still hold for us: a command was sent and its answer never came. Each is released by its
 * token as soon as Redis answers again, and forgotten when its lease is over, as Redis has dropped it by then.
 */
export class Orphans {
  readonly #release: (lock: Renewal) => Promise<unknown>;
  readonly #until = new Map<Renewal, number>();
  #timer: NodeJS.Timeout | undefined;
  #trying = false;

  constructor(release: (lock: Renewal) => Promise<unknown>) {
    this.#release = release;
  }

  add(lock: Renewal): void {
    this.#until.set(lock, now() + lock.leaseMs);
    this.#tryLater();
  }

  /** Releases them now, because Redis can be reached again. */
  async tryNow(): Promise<void> {
    if (this.#trying) return;
    this.#trying = true;
    await Promise.all([...this.#until].map(([lock, until]) => this.#tryOne(lock, until)));
    this.#trying = false;
    this.#tryLater();
  }

  close(): void {
    this.#until.clear();
    clearTimeout(this.#timer);
  }

  async #tryOne(lock: Renewal, until: number): Promise<void> {
    if (now() < until && !(await this.#release(lock).then(() => true, () => false))) return;
    this.#until.delete(lock);
  }

  #tryLater(): void {
    if (this.#until.size === 0) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.tryNow(), RETRY_MS).unref();
  }
}
