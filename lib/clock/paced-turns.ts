import { setTimeout as pause } from 'node:timers/promises';
import { nextTurn } from './next-turn.js';

/** How many turns come at once. */
const AT_ONCE = 100;
/** How long each turn after them takes to come, in ms. */
const PAUSE_MS = 1000;

/**
 * The turns of the event loop in which somebody hears that it is refused. Who tries again at once, without end, leaves
 * time for timers and sockets, and after a hundred tries most of the processor.
 */
export class PacedTurns {
  #taken = 0;

  /** Whether so many were taken that somebody seems to try without end. */
  get areMany(): boolean {
    return this.#taken > AT_ONCE;
  }

  async next(): Promise<void> {
    if (++this.#taken <= AT_ONCE) await nextTurn();
    else await pause(PAUSE_MS, undefined, { ref: false });
  }
}
