const FIRST_AT = 1024;

/** A map, as far as it matters here. */
interface Entries<Key, Value> extends Iterable<[Key, Value]> {
  readonly size: number;
  delete(key: Key): unknown;
}

/**
 * Removes expired entries from a map, so that it can't grow for ever. A sweep visits every entry, so it runs only
 * when their number has doubled.
 */
export class Sweep<Key, Value> {
  readonly #entries: Entries<Key, Value>;
  readonly #isOver: (value: Value, key: Key) => boolean;
  #dueAt = FIRST_AT;

  constructor(entries: Entries<Key, Value>, isOver: (value: Value, key: Key) => boolean) {
    this.#entries = entries;
    this.#isOver = isOver;
  }

  /** Sweeps if it is time to. Call it before each entry is added. */
  ifDue(): void {
    if (this.#entries.size < this.#dueAt) return;
    for (const [key, value] of this.#entries) if (this.#isOver(value, key)) this.#entries.delete(key);
    this.#dueAt = Math.max(FIRST_AT, this.#entries.size * 2);
  }
}
