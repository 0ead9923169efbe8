const FIRST_AT = 1024;

/** Drops what is over out of a map, so that it can't grow for ever. To look costs as much as there is, so that is done when the number has doubled. */
export class Sweep<Key, Value> {
  readonly #entries: Map<Key, Value>;
  readonly #isOver: (value: Value, key: Key) => boolean;
  #dueAt = FIRST_AT;

  constructor(entries: Map<Key, Value>, isOver: (value: Value, key: Key) => boolean) {
    this.#entries = entries;
    this.#isOver = isOver;
  }

  /** To be called before an entry is added. */
  ifDue(): void {
    if (this.#entries.size < this.#dueAt) return;
    for (const [key, value] of this.#entries) if (this.#isOver(value, key)) this.#entries.delete(key);
    this.#dueAt = Math.max(FIRST_AT, this.#entries.size * 2);
  }
}
