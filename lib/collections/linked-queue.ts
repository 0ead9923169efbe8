/** An item in a queue. Belongs to one queue at a time. */
export class QueueNode<T> {
  readonly item: T;
  before: QueueNode<T> | undefined;
  behind: QueueNode<T> | undefined;

  constructor(item: T) {
    this.item = item;
  }
}

/**
 * A first-come-first-served queue that any item may leave at any time. Adding, removing and reading the first take the
 * same time however long the queue is; with a `Set`, reading the first takes longer the more items before it were
 * removed.
 */
export class LinkedQueue<T> {
  #first: QueueNode<T> | undefined;
  #last: QueueNode<T> | undefined;
  #size = 0;

  get size(): number {
    return this.#size;
  }

  get first(): T | undefined {
    return this.#first?.item;
  }

  add(item: T): QueueNode<T> {
    const node = new QueueNode(item);
    node.before = this.#last;
    if (this.#last) this.#last.behind = node;
    else this.#first = node;
    this.#last = node;
    this.#size++;
    return node;
  }

  remove(node: QueueNode<T>): void {
    const { before, behind } = node;
    if (before) before.behind = behind;
    else this.#first = behind;
    if (behind) behind.before = before;
    else this.#last = before;
    // In the old generation of the heap, a node that still pointed to the next would keep all later ones alive.
    node.before = node.behind = undefined;
    this.#size--;
  }

  /** Copies all items as they stand now, so that any of them may leave meanwhile. */
  all(): T[] {
    const all: T[] = [];
    for (let node = this.#first; node; node = node.behind) all.push(node.item);
    return all;
  }
}
