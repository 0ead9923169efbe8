import { ChurnMap } from '../../collections/churn-map.js';
import { now } from '../../clock/deadline.js';
import { LOOKS, MOST_STALLS, stalledMs } from '../../clock/running-time.js';
import { SharedTimer } from '../../clock/shared-timer.js';

/** An item that was started, and must end in time. */
interface Started {
  startedAt: number;
  /** How many stalls of the process its time-out has left out. */
  stalls: number;
}

/**
 * Holds the items in flight. All have the same time-out, so the oldest is the next to expire, and one timer is
 * enough. An item expires after 19/20 of its time-out at the earliest, and never after all of it. Time in which the
 * process stood still does not count.
 */
export class InFlight<T extends Started> implements Iterable<T> {
  readonly #timeoutMs: number;
  readonly #expire: (item: T) => void;
  readonly #items = new ChurnMap<T, true>();
  readonly #timer = new SharedTimer();

  constructor(timeoutMs: number, expire: (item: T) => void) {
    this.#timeoutMs = timeoutMs;
    this.#expire = expire;
  }

  get size(): number {
    return this.#items.size;
  }

  add(item: T): void {
    item.startedAt = now();
    item.stalls = 0;
    this.#items.set(item, true);
    if (!this.#timer.isSet) this.#look();
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
    this.#timer.clear();
    return items;
  }

  #look(): void {
    const inMs = this.#timeoutMs / LOOKS;
    const dueAt = now() + inMs;
    // Timers run before sockets are read: after a stall of the process, the replies may be there already.
    this.#timer.set(inMs, () => setImmediate(() => this.#expireOld(dueAt)));
  }

  #expireOld(dueAt: number): void {
    const stalled = stalledMs(dueAt, this.#timeoutMs);
    if (stalled > 0) for (const item of this.#items.keys()) leaveOut(stalled, item);
    const late = now() - this.#timeoutMs * (1 - 1 / LOOKS);
    for (const item of this.#items.keys()) {
      if (item.startedAt > late) break;
      this.#items.delete(item);
      this.#expire(item);
    }
    if (this.#items.size > 0 && !this.#timer.isSet) this.#look();
  }
}

function leaveOut(stalledMs: number, item: Started): void {
  if (item.stalls++ < MOST_STALLS) item.startedAt = Math.min(now(), item.startedAt + stalledMs);
}
