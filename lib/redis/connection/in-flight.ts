import { now } from '../../clock/deadline.js';
import { atRoot } from '../../clock/root-context.js';

/** Something that was started, and must end in time. */
interface Started {
  startedAt: number;
}

/** How often in a time-out to look for what is late. */
const LOOKS = 20;

/**
 * What is under way, all with the same time-out: so the oldest is the next to expire, and one timer looks at it now and then.
 * Nothing expires later than its time-out, and nothing earlier than 19/20 of it.
 */
export class InFlight<T extends Started> implements Iterable<T> {
  readonly #timeoutMs: number;
  readonly #expire: (item: T) => void;
  readonly #items = new Set<T>();
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
    this.#items.add(item);
    this.#timer ??= this.#look();
  }

  delete(item: T): void {
    this.#items.delete(item);
  }

  [Symbol.iterator](): Iterator<T> {
    return this.#items.values();
  }

  /** Forgets them all, and answers what they were. */
  clear(): T[] {
    const items = [...this.#items];
    this.#items.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
    return items;
  }

  #look(): NodeJS.Timeout {
    // Timers run before sockets are read: after a stall of the process, the answers may be there already.
    return atRoot(() => setTimeout(() => setImmediate(() => this.#expireOld()), this.#timeoutMs / LOOKS));
  }

  #expireOld(): void {
    const late = now() - this.#timeoutMs * (1 - 1 / LOOKS);
    for (const item of this.#items) {
      if (item.startedAt > late) break;
      this.#items.delete(item);
      this.#expire(item);
    }
    this.#timer = this.#items.size > 0 ? this.#look() : undefined;
  }
}
