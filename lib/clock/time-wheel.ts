import { ChurnMap } from '../collections/churn-map.js';
import { LONGEST_TIMER_MS, now } from './deadline.js';
import { SharedTimer } from './shared-timer.js';

/**
 * Keeps many due times on one timer. Items that are due at the same ms share a slot; adding and deleting an item
 * cost the same however many there are. The timer does not keep the process alive.
 */
export class TimeWheel<T> {
  readonly #slots = new ChurnMap<number, ChurnMap<T, true>>();
  readonly #due: (items: T[]) => void;
  readonly #timer = new SharedTimer();
  #armedFor = Infinity;

  constructor(due: (items: T[]) => void) {
    this.#due = due;
  }

  add(atMs: number, item: T): void {
    let slot = this.#slots.get(atMs);
    if (!slot) this.#slots.set(atMs, (slot = new ChurnMap()));
    slot.set(item, true);
    if (!this.#timer.isSet) this.#arm(earliest(this.#slots.keys()));
    else if (atMs < this.#armedFor) this.#arm(atMs);
  }

  /** @returns false when it was not there, or is over */
  delete(atMs: number, item: T): boolean {
    const slot = this.#slots.get(atMs);
    if (!slot?.delete(item)) return false;
    // An empty slot would cost a timer, and time in every turn, until it is due.
    if (slot.size === 0) this.#slots.delete(atMs);
    return true;
  }

  clear(): void {
    this.#slots.clear();
    this.#timer.clear();
    this.#armedFor = Infinity;
  }

  #arm(atMs: number): void {
    this.#armedFor = atMs;
    this.#timer.set(Math.min(Math.max(0, atMs - now()), LONGEST_TIMER_MS), () => this.#turn()).unref();
  }

  #turn(): void {
    this.#armedFor = Infinity;
    const time = now();
    const due: T[] = [];
    for (const [atMs, slot] of this.#slots) {
      if (atMs > time) continue;
      this.#slots.delete(atMs);
      for (const item of slot.keys()) due.push(item);
    }
    if (this.#slots.size > 0) this.#arm(earliest(this.#slots.keys()));
    if (due.length > 0) this.#due(due);
  }
}

function earliest(times: Iterable<number>): number {
  let first = Infinity;
  for (const time of times) if (time < first) first = time;
  return first;
}
