/** Keeps the first of many items in an order, without sorting all of them. */
export class First<Item> {
  readonly #most: number;
  readonly #compare: (one: Item, other: Item) => number;
  #kept: Item[] = [];
  /** The last of the first, as far as that is known: what comes behind it is none of them. */
  #last: Item | undefined;

  /** @param most how many to keep */
  constructor(most: number, compare: (one: Item, other: Item) => number) {
    this.#most = most;
    this.#compare = compare;
  }

  add(item: Item): void {
    if (this.#last !== undefined && this.#compare(item, this.#last) > 0) return;
    this.#kept.push(item);
    if (this.#kept.length >= 2 * this.#most) this.#cut();
  }

  /** Returns those that are kept, in their order. */
  items(): readonly Item[] {
    this.#cut();
    return this.#kept;
  }

  #cut(): void {
    this.#kept.sort(this.#compare);
    if (this.#kept.length < this.#most) return;
    this.#kept.length = this.#most;
    this.#last = this.#kept.at(-1);
  }
}
