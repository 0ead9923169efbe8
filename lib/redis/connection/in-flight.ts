import { ChurnMap } from '../../collections/churn-map.js';
import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';

/** An item that was started, and must end in time. */
interface Started {
  startedAt: number;
}

/** How often in one time-out to look for late items. */
const LOOKS = 20;

/**
 * Holds the items in flight. All have the same time-out, so the oldest is the next to expire, and one timer is
 * enough. An item expires after 19/20 of its time-out at the earliest, and never after all of it.
 */
export class InFlight<T extends Started> implements Iterable<T> {
  readonly #timeoutMs: number;
  readonly #expire: (item: T) => void;
  readonly #items = new ChurnMap<T, true>();
  #timer: NodeJS.Timeout | undefined;

  constructor(timeoutMs: number, expire: (item: T) => void) {
    this.#timeoutMs = timeoutMs;
    this.#expire = expire;
  }

  get size(): number {
    return this.#items.size;
  }

  add(item: T): void {
    item.startedAt = now();
    this.#items.set(item, true);
    this.#timer ??= this.#look();
  }

  delete(item: T): void {
    this.#items.delete(item);
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#items.keys();
  }

  /** Removes and returns all items. */
  clear(): T[] {
    const items = [...this.#items.keys()];
    this.#items.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return items;
  }

  #look(): NodeJS.Timeout {
    // Timers run before sockets are read: after a stall of the process, the replies may be there already.
    return atRoot(() => setTimeout(() => setImmediate(() => this.#expireOld()), this.#timeoutMs / LOOKS));
  }

  #expireOld(): void {
    const late = now() - this.#timeoutMs * (1 - 1 / LOOKS);
    for (const item of this.#items.keys()) {
      if (item.startedAt > late) break;
      this.#items.delete(item);
      this.#expire(item);
    }
    this.#timer = this.#items.size > 0 ? this.#look() : undefined;
  }
}
