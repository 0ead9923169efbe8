import { AsyncLocalStorage } from 'node:async_hooks';
import type { Lock } from './lock.js';

interface Node {
  readonly lock: Lock;
  readonly outer: Node | undefined;
}

/** Which locks the running async context is inside of, innermost first. */
export class LockContext {
  readonly #nodes = new AsyncLocalStorage<Node>();

  run<T>(lock: Lock, work: () => T): T {
    return this.#nodes.run({ lock, outer: this.#nodes.getStore() }, work);
  }

  /** The innermost lock that is still held, of this key if one is named. */
  current(key?: string): Lock | undefined {
    return this.#find((lock) => key === undefined || lock.keys.includes(key));
  }

  /** The innermost lock that is still held and has one of these keys. */
  holding(keys: readonly string[]): Lock | undefined {
    return this.#find((lock) => keys.some((key) => lock.keys.includes(key)));
  }

  #find(fits: (lock: Lock) => boolean): Lock | undefined {
    for (let node = this.#nodes.getStore(); node; node = node.outer) {
      if (fits(node.lock) && node.lock.isHeld) return node.lock;
    }
    return undefined;
  }
}
