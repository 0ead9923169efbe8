import { AsyncLocalStorage } from 'node:async_hooks';

/** The turn of a handler: one of several tries works in the hold of their request. */
export class Turn {
  readonly #hold: object;
  /** The turn that this one was taken in. */
  #outer: Turn | undefined;
  readonly #end: () => void;
  #hasEnded = false;

  constructor(hold: object, outer: Turn | undefined, end: () => void) {
    this.#hold = hold;
    this.#outer = outer;
    this.#end = end;
  }

  /**
   * Whether this turn, or one around it, is in that hold and still lasts. Unlinks those around it that have ended:
   * otherwise requests that each start the handler of the next one would grow a chain for ever.
   */
  isIn(hold: object): boolean {
    while (this.#outer && this.#outer.#hasEnded) this.#outer = this.#outer.#outer;
    return (this.#hold === hold && !this.#hasEnded) || (this.#outer?.isIn(hold) ?? false);
  }

  run<T>(work: () => T): T {
    return turns.run(this, work);
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#end();
  }
}

const turns = new AsyncLocalStorage<Turn>();

/** Returns the innermost turn that the running async context works in. */
export function currentTurn(): Turn | undefined {
  return turns.getStore();
}
