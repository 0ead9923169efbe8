import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lock } from '../lock/lock.js';

/** A lock in an async context, and the lock around it. */
export class LockNode {
  /** Undefined when its work has ended. */
  lock: Lock | undefined;
  #parent: LockNode | undefined;

  constructor(lock: Lock, parent: LockNode | undefined) {
    this.lock = lock;
    this.#parent = parent;
  }

  /**
   * The nearest node around this one whose work has not ended. Unlinks the others: otherwise work that starts the next
   * locked work while it runs would grow a chain for ever.
   */
  get parent(): LockNode | undefined {
    while (this.#parent && !this.#parent.lock) this.#parent = this.#parent.#parent;
    return this.#parent;
  }
}

/** Knows the locks that the running async context is inside of, innermost first. */
export class LockContext {
  readonly #nodes = new AsyncLocalStorage<LockNode | undefined>();

  /** Runs the work inside a lock. Call `leave` with the same node when the work has ended. */
  run<T>(node: LockNode, work: (lock: Lock) => T): T {
    const lock = node.lock!;
    const { trace } = lock;
    return this.#nodes.run(node, trace ? (lock) => trace.run(() => work(lock)) : work, lock);
  }

  /** Returns a function that runs work inside the locks of the running async context, whoever calls it. */
  keep(): <T>(work: () => T) => T {
    const node = this.#nodes.getStore();
    return (work) => (node?.lock ? this.run(node, work) : this.#nodes.run(node, work));
  }

  /** Runs work inside no lock. */
  outside<T>(work: () => T): T {
    return this.#nodes.run(undefined, work);
  }

  /** Takes the running async context, and all that it calls from here on, out of all locks. */
  leaveAll(): void {
    if (this.#nodes.getStore()) this.#nodes.enterWith(undefined);
  }

  enter(lock: Lock): LockNode {
    return new LockNode(lock, this.innermost());
  }

  /**
   * Forgets the lock: promises keep the context they were made in, so each lock would otherwise keep the one before it.
   */
  leave(node: LockNode): void {
    node.lock = undefined;
  }

  /**
   * Returns the innermost lock that is still held. Skips those that have ended, so that work which schedules its own
   * next run does not grow a chain.
   */
  innermost(): LockNode | undefined {
    let node = this.#nodes.getStore();
    while (node && !node.lock?.isHeld) node = node.parent;
    return node;
  }

  /** Whether the running async context is in the work of a lock, be it held or lost. */
  isInside(): boolean {
    let node = this.#nodes.getStore();
    while (node && !node.lock) node = node.parent;
    return node !== undefined;
  }

  /** Returns the innermost lock that is still held; with a key, of that key. */
  current(key?: string): Lock | undefined {
    return this.#find((lock) => key === undefined || lock.keys.includes(key));
  }

  /** Lists the keys that the running async context holds, innermost first, each once. */
  heldKeys(): readonly string[] {
    const keys = new Set<string>();
    for (let node = this.innermost(); node; node = node.parent)
      if (node.lock?.isHeld) for (const key of node.lock.keys) keys.add(key);
    return [...keys];
  }

  /** Finds, for each of these keys that is held, the innermost lock that has it. Undefined when none is held. */
  holding(keys: readonly string[]): ReadonlyMap<string, Lock> | undefined {
    let node = this.innermost();
    if (!node) return undefined;
    const asked = new Set(keys);
    const found = new Map<string, Lock>();
    for (; node; node = node.parent) {
      if (!node.lock?.isHeld) continue;
      for (const key of node.lock.keys) {
        if (asked.has(key) && !found.has(key)) found.set(key, node.lock);
      }
    }
    return found.size > 0 ? found : undefined;
  }

  #find(fits: (lock: Lock) => boolean): Lock | undefined {
    for (let node = this.#nodes.getStore(); node; node = node.parent) {
      if (node.lock?.isHeld && fits(node.lock)) return node.lock;
    }
    return undefined;
  }
}
