import { ChurnMap } from '../collections/churn-map.js';
import type { LockAttributes, UpDownCounter } from './lock-instruments.js';

/**
 * Counts what is there now. It knows each by its number, so what it has not seen come never counts when it goes: the
 * count can't drift.
 */
export class Gauge {
  readonly #counter: UpDownCounter;
  readonly #present = new ChurnMap<number, LockAttributes>();

  constructor(counter: UpDownCounter) {
    this.#counter = counter;
  }

  enter(id: number, attributes: LockAttributes): void {
    if (this.#present.has(id)) return;
    this.#present.set(id, attributes);
    this.#counter.add(1, attributes);
  }

  /** Returns the attributes that it entered with; undefined when it is not here. */
  leave(id: number): LockAttributes | undefined {
    const attributes = this.#present.get(id);
    if (!attributes) return undefined;
    this.#present.delete(id);
    this.#counter.add(-1, attributes);
    return attributes;
  }

  /** Lets all leave. */
  clear(): void {
    for (const id of [...this.#present.keys()]) this.leave(id);
  }
}
