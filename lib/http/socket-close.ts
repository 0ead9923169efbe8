import type { EventEmitter } from 'node:events';

/** A connection has one listener of ours, however many requests are on it: their number is the client's choice. */
const watches = new WeakMap<EventEmitter, CloseWatch>();

class CloseWatch {
  readonly #connection: EventEmitter;
  readonly #told = new Set<() => void>();

  constructor(connection: EventEmitter) {
    this.#connection = connection;
    connection.on('close', this.#onClose);
  }

  add(tell: () => void): () => void {
    this.#told.add(tell);
    return () => {
      this.#told.delete(tell);
      if (this.#told.size === 0) this.#end();
    };
  }

  #onClose = (): void => {
    const told = [...this.#told];
    this.#end();
    for (const tell of told) tell();
  };

  #end(): void {
    this.#connection.off('close', this.#onClose);
    if (watches.get(this.#connection) === this) watches.delete(this.#connection);
  }
}

/** Calls when the connection closes; returns what stops that. Where nobody waits, no listener is left. */
export function onceClosed(connection: EventEmitter, tell: () => void): () => void {
  let watch = watches.get(connection);
  if (!watch) watches.set(connection, (watch = new CloseWatch(connection)));
  return watch.add(tell);
}
