/** What all names count as for which there is no room. */
export const OTHER = 'other';

/** Lets only so many different names through, because each name is a time series of its own. */
export class BoundedNames {
  readonly #most: number;
  readonly #onFull: (name: string) => void;
  readonly #names = new Set<string>();
  #isFull = false;

  /** @param onFull gets the first name that there is no room for */
  constructor(most: number, onFull: (name: string) => void) {
    this.#most = most;
    this.#onFull = onFull;
  }

  /** Returns the name, or `'other'` when there are too many. */
  bounded(name: string | undefined): string {
    if (name === undefined) return OTHER;
    if (this.#names.has(name)) return name;
    if (this.#names.size < this.#most) {
      this.#names.add(name);
      return name;
    }
    if (!this.#isFull) {
      this.#isFull = true;
      this.#onFull(name);
    }
    return OTHER;
  }
}
