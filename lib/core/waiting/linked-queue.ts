/** Somebody in a line. Belongs to one line at a time. */
export class QueueNode<T> {
  readonly who: T;
  before: QueueNode<T> | undefined;
  behind: QueueNode<T> | undefined;

  constructor(who: T) {
    this.who = who;
  }
}

/**
 * First come, first served; and everybody may leave at any time. Joining, leaving and looking who is first take the same time
 * however long the line is, which is not so for the first of a `Set` that others have left.
 */
export class LinkedQueue<T> {
  #first: QueueNode<T> | undefined;
  #last: QueueNode<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first?.who;
  }

  join(who: T): QueueNode<T> {
    const place = new QueueNode(who);
    place.before = this.#last;
    if (this.#last) this.#last.behind = place;
    else this.#first = place;
    this.#last = place;
    this.#size++;
    return place;
  }

  leave(place: QueueNode<T>): void {
    const { before, behind } = place;
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
    this.#size--;
  }

  /** All of them as they stand now, so that each may leave meanwhile. */
  all(): T[] {
    const all: T[] = [];
    for (let place = this.#first; place; place = place.behind) all.push(place.who);
    return all;
  }
}
