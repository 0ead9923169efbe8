import type { ServerResponse } from 'node:http';
import type { LockKey } from '../../core/request/lock-key.js';
import type { RequestHold } from './request-hold.js';

/**
 * The holds of one handler. A request may have several: an interceptor may try the handler again while the first try
 * still works, or after it has changed what the key is made from.
 */
export class RequestHolds {
  readonly #holds = new WeakMap<ServerResponse, readonly RequestHold[]>();

  add(response: ServerResponse, hold: RequestHold): void {
    const held = this.#of(response).filter(({ lock }) => lock.isHeld);
    this.#holds.set(response, [...held, hold]);
  }

  /** Finds the hold of exactly that key: if there are several, one in which nothing works just now. */
  find(response: ServerResponse, key: LockKey): RequestHold | undefined {
    const keys = new Set([key].flat());
    const found = this.#of(response).filter(
      ({ lock }) => lock.isHeld && lock.keys.length === keys.size && lock.keys.every((each) => keys.has(each)),
    );
    return found.find(({ isIdle }) => isIdle) ?? found[0];
  }

  #of(response: ServerResponse): readonly RequestHold[] {
    return this.#holds.get(response) ?? [];
  }
}
