import type { RequestHold } from './request-hold.js';

/** One call of a handler inside the lock of its request. */
export interface HandlerCall {
  readonly hold: RequestHold;
  readonly onLost: 'throw' | 'ignore';
}
