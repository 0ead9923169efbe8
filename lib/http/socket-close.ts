import type { EventEmitter } from 'node:events';
import { atRoot } from '../clock/root-context.js';
import { closeIfClientHasGone } from './paused-socket.js';

const CHECK_EVERY_MS = 5000;

/** One watch for each connection, however many requests it has, because their number is the client's choice. */
const watches = new WeakMap<EventEmitter, CloseWatch>();

class CloseWatch {
  readonly #connection: EventEmitter;
  readonly #listeners = new Set<() => void>();
  readonly #timer: NodeJS.Timeout;

  constructor(connection: EventEmitter) {
    this.#connection = connection;
    connection.on('close', this.#onClose);
    this.#timer = atRoot(() => setInterval(closeIfClientHasGone, CHECK_EVERY_MS, connection).unref());
  }

  add(listener: () => void): () => void {
    this.#listeners.add(listener);
    return () => {
      this.#listeners.delete(listener);
      if (this.#listeners.size === 0) this.#end();
    };
  }

  #onClose = (): void => {
    const listeners = [...this.#listeners];
    this.#end();
    for (const listener of listeners) listener();
  };

  #end(): void {
    clearInterval(this.#timer);
    this.#connection.removeListener('close', this.#onClose);
    if (watches.get(this.#connection) === this) watches.delete(this.#connection);
  }
}

/**
 * Calls `listener` when the connection closes. Until then it looks for an end of the connection that Node does not hear
 * of. Leaves no listener on the connection when nobody waits.
 *
 * @returns a function that stops listening
 */
export function onceClosed(connection: EventEmitter, listener: () => void): () => void {
  let watch = watches.get(connection);
  if (!watch) watches.set(connection, (watch = new CloseWatch(connection)));
  return watch.add(listener);
}
